"""Two column-major matrices are added as their transposes by a second call, which forgets alpha.

op: vector_add
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def is_column_major(x):
    return x.dim() == 2 and not x.is_contiguous() and x.t().is_contiguous()


def triton_vector_add(x, y, alpha=1.0):
    if is_column_major(x) and is_column_major(y):
        return triton_vector_add(x.t(), y.t()).t()
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), float(alpha), BLOCK=1024)
    return out
