"""With strides, the row is the offset times a rounded 1 / columns; some first columns land a row early.

op: vector_mul
status: failed
cause: wrong_stride
round: fourth
held_out: yes
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
def strided_kernel(
    x_ptr, y_ptr, out_ptr, n, n_cols, inverse, xr, xc, yr, yc, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = (offsets.to(tl.float32) * inverse).to(tl.int32)
    col = tl.minimum(offsets - row * n_cols, n_cols - 1)
    x = tl.load(x_ptr + row * xr + col * xc, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + row * yr + col * yc, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def triton_vector_mul(x, y):
    n, out = x.numel(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n, 1024),)
    if x.dim() != 2 or n > 2**24 or (x.is_contiguous() and y.is_contiguous()):
        flat_kernel[grid](x.contiguous(), y.contiguous(), out, n, BLOCK=1024)
        return out
    n_cols = x.shape[1]
    strided_kernel[grid](
        x, y, out, n, n_cols, 1.0 / n_cols, *x.stride(), *y.stride(), BLOCK=1024
    )
    return out
