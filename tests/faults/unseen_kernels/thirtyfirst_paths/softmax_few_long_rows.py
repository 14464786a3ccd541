"""Right: few long rows are split in three launches over a workspace that is not cleared, whose last parts may be short or empty.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl

LONG = 16384
PARTS = 32


@triton.jit
def whole_rows(x_ptr, out_ptr, n_rows, m, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, WIDTH)
    mask = (rows < n_rows)[:, None] & (cols < m)[None, :]
    at = rows.to(tl.int64)[:, None] * m + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + at, e / tl.sum(e, axis=1)[:, None], mask=mask)


@triton.jit
def part_of_row(x_ptr, top_ptr, sum_ptr, m, chunk, SIZE: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    first = part * chunk
    last = tl.minimum(first + chunk, m)
    top = tl.full((SIZE,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for start in range(first, last, SIZE):
        cols = start + tl.arange(0, SIZE)
        x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < last, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(top, x, propagate_nan=tl.PropagateNan.ALL)
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - safe) + tl.exp(x - safe)
        top = new
    most = tl.max(top, axis=0)
    safe = tl.where(most == -float("inf"), 0.0, most)
    at = row * tl.num_programs(1) + part
    tl.store(top_ptr + at, most)
    tl.store(sum_ptr + at, tl.sum(total * tl.exp(top - safe), axis=0))


@triton.jit
def write_part(x_ptr, top_ptr, sum_ptr, out_ptr, m, n_parts, SIZE: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(1)
    parts = tl.arange(0, N)
    top = tl.load(top_ptr + row * n_parts + parts, mask=parts < n_parts, other=-float("inf"))
    total = tl.load(sum_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    most = tl.max(top, axis=0)
    total = tl.sum(total * tl.exp(top - most), axis=0)
    cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    at = row.to(tl.int64) * m + cols
    x = tl.load(x_ptr + at, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.exp(x - most) / total, mask=cols < m)


def multiprocessors(device):
    if device.type != "cuda":
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    n_rows = x.numel() // m
    if m < LONG or (n_rows * 8 > multiprocessors(x.device) and m <= 2 * LONG):
        width = triton.next_power_of_2(m)
        rows = max(1, 2048 // width)
        warps = 4 if width <= 4096 else 16
        grid = (triton.cdiv(n_rows, rows),)
        whole_rows[grid](x, out, n_rows, m, ROWS=rows, WIDTH=width, num_warps=warps)
        return out
    size = 1024 if x.dtype == torch.float32 else 2048
    parts = PARTS if n_rows == 1 else 24 if n_rows % 2 else 16
    chunk = triton.cdiv(triton.cdiv(m, parts), size) * size
    top, total = torch.empty((2, n_rows, parts), dtype=torch.float32, device=x.device)
    part_of_row[(n_rows, parts)](x, top, total, m, chunk, SIZE=size)
    write_part[(triton.cdiv(m, size), n_rows)](x, top, total, out, m, parts, SIZE=size, N=PARTS)
    return out
