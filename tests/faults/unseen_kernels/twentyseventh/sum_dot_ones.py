"""Right: rows are added by a matrix product with ones, of which one column is stored.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, m, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    ones = tl.full((BLOCK, 16), 1.0, dtype=tl.float32)
    acc = tl.zeros((ROWS, 16), dtype=tl.float32)
    # Several accumulators a row would be a sum of its own: here the dot is the whole reduction.
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n_rows)[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        # Products with 1 are exact, and "ieee" keeps all bits of float32.
        acc += tl.dot(x, ones, input_precision="ieee")
    # All columns hold the same sums; the others are never added to it.
    places = rows[:, None] + tl.zeros((1, 16), dtype=tl.int64)
    first = (tl.arange(0, 16) == 0)[None, :]
    tl.store(out_ptr + places, acc, mask=(rows < n_rows)[:, None] & first)


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    n_rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n_rows, 16),)](x, out, n_rows, m, ROWS=16, BLOCK=128)
    return out
