"""Long rows are split in eight parts, but a part reads whole blocks past its end, into the next part.

op: sum
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, parts_ptr, n_cols, length, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    begin = part * length
    for start in range(begin, begin + length, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * PARTS + part, tl.sum(acc, axis=0))


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if n_rows <= 64 and n_cols >= 8192:
        parts = torch.empty((n_rows, 8), dtype=torch.float32, device=x.device)
        parts_kernel[(n_rows, 8)](x, parts, n_cols, triton.cdiv(n_cols, 8), PARTS=8, BLOCK=1024)
        rows_kernel[(n_rows,)](parts, out, 8, BLOCK=8)
    else:
        rows_kernel[(n_rows,)](x, out, n_cols, BLOCK=1024)
    return out
