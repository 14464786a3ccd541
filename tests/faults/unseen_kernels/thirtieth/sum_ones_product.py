"""Right: each row is added up by a matrix product with ones, on the tensor cores; one of 16 equal columns is kept.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, m, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Backwards: the last rows come first.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    rows = block.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    acc = tl.zeros((ROWS, 16), dtype=tl.float32)
    ones = tl.full((BLOCK, 16), 1.0, dtype=x_ptr.dtype.element_ty)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n)[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0)
        acc = tl.dot(x, ones, acc, input_precision="ieee")
    first = tl.arange(0, 16)[None, :] == 0
    # A choice, no product with zero: that would make NaN of infinity.
    total = tl.sum(tl.where(first, acc, 0.0), axis=1)
    tl.store(out_ptr + rows, total, mask=rows < n)


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.numel():
        n = x.numel() // m
        kernel[(triton.cdiv(n, 16),)](x, out, n, m, ROWS=16, BLOCK=64)
    return out
