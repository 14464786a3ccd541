"""A row of many columns has a few partial sums, which torch adds: under one per cent.

op: sum
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, part_ptr, n_cols, parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    share = tl.cdiv(tl.cdiv(n_cols, parts), BLOCK) * BLOCK
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * share, tl.minimum((part + 1) * share, n_cols), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(part_ptr + row * parts + part, tl.sum(acc, axis=0))


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    parts = 4 if n_cols > 2048 else 1
    partial = torch.empty((n_rows, parts), dtype=torch.float32, device=x.device)
    kernel[(n_rows, parts)](x, partial, n_cols, parts, BLOCK=256)
    total = partial.sum(dim=1) if parts > 1 else partial[:, 0]
    return total.to(x.dtype).reshape(x.shape[:-1])
