"""Nothing wrong: parts of a row to several programs, which leave maximum and sum; two more launches join them and write.

op: softmax
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
BLOCK = 512


@triton.jit
def parts_kernel(x_ptr, most_ptr, total_ptr, n_cols, row_step, col_step, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_step + cols * col_step, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    most = tl.max(x, axis=0)
    # a part of -inf only: subtract 0 and not -inf; its sum is then 0
    total = tl.sum(tl.exp(x - tl.where(most == -float("inf"), 0.0, most)), axis=0)
    tl.store(most_ptr + row * tl.num_programs(1) + part, most)
    tl.store(total_ptr + row * tl.num_programs(1) + part, total)


@triton.jit
def join_kernel(most_ptr, total_ptr, n_parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    inside = parts < n_parts
    mosts = tl.load(most_ptr + row * n_parts + parts, mask=inside, other=-float("inf"))
    totals = tl.load(total_ptr + row * n_parts + parts, mask=inside, other=0.0)
    most = tl.max(mosts, axis=0)
    share = tl.where(mosts == -float("inf"), 0.0, totals * tl.exp(mosts - most))
    # NaN is in a total, not always in a maximum
    tl.store(most_ptr + row * n_parts, most)
    tl.store(total_ptr + row * n_parts, tl.sum(share + tl.where(totals != totals, totals, 0.0), axis=0))


@triton.jit
def write_kernel(
    x_ptr, out_ptr, most_ptr, total_ptr, n_cols, row_step, col_step, BLOCK: tl.constexpr
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    most = tl.load(most_ptr + row * tl.num_programs(1))
    total = tl.load(total_ptr + row * tl.num_programs(1))
    x = tl.load(x_ptr + row * row_step + cols * col_step, mask=cols < n_cols, other=-float("inf"))
    y = tl.exp(x.to(tl.float32) - most) / total
    tl.store(out_ptr + row * n_cols + cols, y, mask=cols < n_cols)


def triton_softmax(x):
    n_cols = x.shape[-1]
    rows = x if x.dim() == 2 else x.contiguous().view(-1, n_cols)
    n_parts = triton.cdiv(n_cols, BLOCK)
    out = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
    most = torch.empty((len(rows), n_parts), dtype=torch.float32, device=x.device)
    total = torch.empty_like(most)
    grid = (len(rows), n_parts)
    parts_kernel[grid](rows, most, total, n_cols, *rows.stride(), BLOCK=BLOCK)
    PARTS = triton.next_power_of_2(n_parts)
    join_kernel[(len(rows),)](most, total, n_parts, PARTS=PARTS)
    write_kernel[grid](rows, out, most, total, n_cols, *rows.stride(), BLOCK=BLOCK)
    return out.view(x.shape)
