"""Rows in a wider buffer are read without a mask up to a power of two, and what lies behind them is multiplied by zero: NaN or infinity there gets into the sum.

op: sum
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, cols, row_stride, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    if MASKED:
        x = tl.load(x_ptr + row * row_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        total = tl.sum(x, axis=0)
    else:
        # Full loads; the weights are 1 inside the row and 0 behind it.
        x = tl.load(x_ptr + row * row_stride + at).to(tl.float32)
        total = tl.sum(x * (at < cols).to(tl.float32), axis=0)
    tl.store(out_ptr + row, total)


def triton_sum(x):
    cols = x.shape[-1]
    block = triton.next_power_of_2(cols)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = out.numel()
    if x.dim() == 2 and x.stride(1) == 1 and x.stride(0) >= block:
        last = x.storage_offset() + (rows - 1) * x.stride(0) + block
        fits = last * x.element_size() <= x.untyped_storage().nbytes()
        row_stride = x.stride(0)
    else:
        fits = False
        x = x.contiguous()
        row_stride = cols
    kernel[(rows,)](x, out, cols, row_stride, MASKED=not fits, BLOCK=block)
    return out
