"""The workspace grows with the longest row so far; all of its parts are added.

op: mean
status: failed
cause: stale_state
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, part_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + part * n_rows + row, tl.sum(x, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, n_rows, n_cols, parts):
    row = tl.program_id(0)
    total = 0.0
    for part in range(parts):
        total += tl.load(part_ptr + part * n_rows + row)
    tl.store(out_ptr + row, total / n_cols)


WORKSPACES = {}


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    parts = triton.cdiv(n_cols, 1024)
    kept = WORKSPACES.get(n_rows)
    if kept is None or kept.shape[0] < parts:
        kept = WORKSPACES[n_rows] = torch.zeros((parts, n_rows), device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    part_kernel[(n_rows, parts)](x, kept, n_rows, n_cols, BLOCK=1024)
    join_kernel[(n_rows,)](kept, out, n_rows, n_cols, kept.shape[0])
    return out
