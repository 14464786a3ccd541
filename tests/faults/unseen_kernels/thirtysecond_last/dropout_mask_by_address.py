"""The random number of an element follows from its address, so elements of an expanded x that share memory share a mask.

op: dropout
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, row_stride, col_stride, p, scale, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    # One offset for the load and for the random number saves a multiplication in 64 bits.
    places = row * row_stride + cols.to(tl.int64) * col_stride
    x = tl.load(x_ptr + places, mask=mask, other=0.0)
    keep = tl.rand(seed, places) >= p
    out = tl.where(keep, x.to(tl.float32) * scale, 0.0)
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    if x.dim() == 2 and not x.is_contiguous():
        rows, cols = x.shape
        strides = x.stride()
    else:
        x = x.contiguous()
        cols = x.shape[-1] if x.dim() else 1
        rows = x.numel() // cols
        strides = (cols, 1)
    block = min(1024, triton.next_power_of_2(cols))
    grid = (rows, triton.cdiv(cols, block))
    kernel[grid](x, out, rows, cols, *strides, p, 1.0 / (1.0 - p), seed, BLOCK=block)
    return out
