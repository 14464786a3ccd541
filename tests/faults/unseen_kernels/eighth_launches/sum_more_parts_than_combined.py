"""Rows of more than 65,536 elements, fewer than four of them, have more than the 64 parts that the second kernel adds.

op: sum
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


@triton.jit
def parts_kernel(x_ptr, part_ptr, n_cols, chunk, n_parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * chunk, n_cols)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * chunk, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < end, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(acc, axis=0))


@triton.jit
def combine_kernel(part_ptr, out_ptr, n_parts, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.arange(0, BLOCK)
    values = tl.load(part_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(values, axis=0))


PROGRAMS = 256


def triton_sum(x):
    n_cols = x.shape[-1]
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    if not 1 <= n_rows < 16 or n_cols < 8192:
        rows_kernel[(n_rows,)](x, out, n_cols, BLOCK=1024)
        return out
    n_parts = min(PROGRAMS // n_rows, triton.cdiv(n_cols, 1024))
    chunk = triton.cdiv(triton.cdiv(n_cols, n_parts), 1024) * 1024
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    parts_kernel[(n_rows, n_parts)](x, parts, n_cols, chunk, n_parts, BLOCK=1024)
    combine_kernel[(n_rows,)](parts, out, n_parts, BLOCK=64)
    return out
