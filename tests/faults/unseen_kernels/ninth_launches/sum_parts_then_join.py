"""The joining kernel reads 128 parts at most; a single long row is cut into more of them.

op: sum
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl

TARGET = 192


@triton.jit
def part_kernel(x_ptr, part_ptr, n_cols, n_parts, steps, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(steps):
        cols = (part * steps + step) * BLOCK + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(acc, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, n_parts, LANES: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, LANES)
    parts = tl.load(part_ptr + row * n_parts + lanes, mask=lanes < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    blocks = triton.cdiv(n_cols, 512)
    n_parts = min(blocks, max(1, TARGET // n_rows))
    steps = triton.cdiv(blocks, n_parts)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    part_kernel[(n_rows, n_parts)](rows, parts, n_cols, n_parts, steps, BLOCK=512)
    join_kernel[(n_rows,)](parts, out, n_parts, LANES=128)
    return out
