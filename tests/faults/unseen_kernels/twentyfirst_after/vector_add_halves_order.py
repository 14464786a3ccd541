"""For the halves of one tensor the lower address counts as x and the upper one is scaled: wrong if x is the second half and alpha is not 1.

op: vector_add
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


@triton.jit
def halves(both_ptr, out_ptr, m, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(both_ptr + row * 2 * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    y = tl.load(both_ptr + row * 2 * m + m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, x + alpha * y, mask=cols < m)


def are_halves(x, y):
    """Return whether the two are neighbouring halves of the rows of one matrix."""
    if x.dim() != 2 or x.stride() != y.stride() or x.stride() != (2 * x.shape[1], 1):
        return False
    return abs(y.data_ptr() - x.data_ptr()) == x.shape[1] * x.element_size()


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if are_halves(x, y):
        rows, m = x.shape
        both = x if x.data_ptr() < y.data_ptr() else y
        halves[(rows, triton.cdiv(m, 1024))](both, out, m, alpha, BLOCK=1024)
    else:
        x, y = x.contiguous(), y.contiguous()
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), alpha, BLOCK=1024)
    return out
