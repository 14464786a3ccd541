"""Rows on the grid's second axis, which ends at 65,535.

op: sum
status: failed
cause: truncated_extent
needs: gpu, the interpreter's grid has no limit
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(1, x.numel() // n_cols)](x, out, n_cols, BLOCK=min(4096, triton.next_power_of_2(n_cols)))
    return out
