"""Right: the sums are products with a matrix of ones, 16 rows a program, of whose 16 equal columns one is used.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, m, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    ones = tl.full((BLOCK, 16), 1.0, tl.float32).to(x_ptr.dtype.element_ty)
    acc = tl.zeros((ROWS, 16), tl.float32)
    # From the end of the row to its start: the part with masked lanes comes first.
    for back in range(tl.cdiv(m, BLOCK) - 1, -1, -1):
        cols = back * BLOCK + tl.arange(0, BLOCK)
        mask = (rows[:, None] < n) & (cols[None, :] < m)
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0)
        acc += tl.dot(x, ones, input_precision="ieee")
    first = tl.arange(0, 16)[None, :] == 0
    total = tl.sum(tl.where(first, acc, 0.0), axis=1)
    tl.store(out_ptr + rows, total / m, mask=rows < n)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    n = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    block = min(128, max(16, triton.next_power_of_2(m)))
    kernel[(triton.cdiv(n, 16),)](x, out, n, m, ROWS=16, BLOCK=block)
    return out
