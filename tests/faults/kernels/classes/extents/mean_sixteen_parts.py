"""The second kernel reads the first sixteen partial sums: 16,384 columns.

op: mean
status: failed
cause: truncated_extent
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, part_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(x, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, 16, BLOCK):
        parts = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / n_cols)


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    n_parts = triton.cdiv(n_cols, 1024)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    parts_kernel[(n_rows, n_parts)](x, parts, n_cols, n_parts, BLOCK=1024)
    join_kernel[(n_rows,)](parts, out, n_cols, n_parts, BLOCK=16)
    return out
