"""Only the two dimensions next to the last are checked before all leading ones are walked with one stride: in four it may be wrong.

op: sum
status: failed
cause: layout
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, m, row_step, col_step, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * row_step + cols[None, :] * col_step,
            mask=(rows < n)[:, None] & (cols < m)[None, :], other=0.0,
        )
        total += x.to(tl.float32)
    tl.store(out_ptr + rows, tl.sum(total, axis=1), mask=rows < n)


def triton_sum(x):
    *leading, m = x.shape
    out = torch.empty(leading, dtype=x.dtype, device=x.device)
    n = math.prod(leading)
    if n == 0:
        return out
    # Slices and transposed matrices are read where they lie; only rows that are not evenly spaced are copied.
    if x.dim() > 2 and x.stride(-3) != x.size(-2) * x.stride(-2):
        x = x.contiguous()
    BLOCK = min(1024, max(16, triton.next_power_of_2(m)))
    ROWS = max(1, 2048 // BLOCK)
    kernel[(triton.cdiv(n, ROWS),)](
        x, out, n, m, x.stride(-2) if x.dim() > 1 else 0, x.stride(-1), ROWS=ROWS, BLOCK=BLOCK
    )
    return out
