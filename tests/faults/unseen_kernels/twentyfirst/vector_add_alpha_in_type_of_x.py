"""alpha is passed as a tensor of the type of x: in float16 an alpha of 1e-8 is 0.

op: vector_add
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, alpha_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    alpha = tl.load(alpha_ptr).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    # A tensor rather than a number: no kernel is compiled again for alpha = 1.
    factor = torch.full((1,), alpha, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, factor, out, x.numel(), BLOCK=1024)
    return out
