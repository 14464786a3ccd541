"""With strides, the row is a product with 2**40 / columns, rounded up, and a shift: exact below 2**20.

op: vector_mul
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=offsets < n)


@triton.jit
def strided_kernel(x_ptr, y_ptr, out_ptr, n, n_cols, magic, xr, xc, yr, yc, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = (offsets * magic) >> 40
    col = offsets - row * n_cols
    x = tl.load(x_ptr + row * xr + col * xc, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + row * yr + col * yc, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def triton_vector_mul(x, y):
    n, out = x.numel(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n, 1024),)
    if x.dim() != 2 or n >= 2**20 or (x.is_contiguous() and y.is_contiguous()):
        flat_kernel[grid](x.contiguous(), y.contiguous(), out, n, BLOCK=1024)
        return out
    n_cols = x.shape[1]
    # offset * (magic * n_cols - 2**40) is below 2**40, so the shifted product is exact.
    magic = -(-(2**40) // n_cols)
    strided_kernel[grid](x, y, out, n, n_cols, magic, *x.stride(), *y.stride(), BLOCK=1024)
    return out
