"""From 2,048 rows on, each of 512 programs takes n_rows // 512 rows: the remainder of the division stays unwritten.

op: mean
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


@triton.jit
def many_rows_kernel(x_ptr, out_ptr, n_cols, per_program, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * per_program
    for row in range(first, first + per_program):
        acc = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


PROGRAMS = 512


def triton_mean(x):
    n_cols = x.shape[-1]
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    per_program = n_rows // PROGRAMS
    if per_program < 4:
        row_kernel[(n_rows,)](x, out, n_cols, BLOCK=BLOCK)
    else:
        many_rows_kernel[(PROGRAMS,)](x, out, n_cols, per_program, BLOCK=BLOCK)
    return out
