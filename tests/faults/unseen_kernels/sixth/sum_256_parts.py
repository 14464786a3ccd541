"""The second stage adds the first 256 partial sums of a row, and rows over 524,288 elements have more.

op: sum
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, parts_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * n_parts + part, tl.sum(x, axis=0))


@triton.jit
def join_kernel(parts_ptr, out_ptr, n_parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    parts = tl.load(parts_ptr + row * n_parts + lanes, mask=lanes < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_parts = triton.cdiv(n_cols, 2048)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    part_kernel[(n_parts, n_rows)](rows, parts, n_cols, n_parts, BLOCK=2048)
    join_kernel[(n_rows,)](parts, out, n_parts, BLOCK=256)
    return out
