"""The second kernel of the split path reads at most 128 partial sums of a row, but one to three very long rows have more parts.

op: sum
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
LONG = 64 * BLOCK  # from here on a row is worth several programs
PARTIALS = 128


@triton.jit
def short_rows(x_ptr, out_ptr, n_rows, m, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, WIDTH)
    mask = (rows < n_rows)[:, None] & (cols < m)[None, :]
    x = tl.load(x_ptr + rows.to(tl.int64)[:, None] * m + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.sum(x.to(tl.float32), axis=1), mask=rows < n_rows)


@triton.jit
def parts_of_rows(x_ptr, out_ptr, m, chunk, SIZE: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    first = part * chunk
    last = tl.minimum(first + chunk, m)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for start in range(first, last, SIZE):
        cols = start + tl.arange(0, SIZE)
        x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < last, other=0.0)
        total += x.to(tl.float32)
    tl.store(out_ptr + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


@triton.jit
def add_parts(part_ptr, out_ptr, n_parts, SIZE: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.arange(0, SIZE)
    x = tl.load(part_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def multiprocessors(device):
    if device.type != "cuda":
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    if n_rows == 0:
        return out
    if m <= 1024:
        width = triton.next_power_of_2(m)
        rows = max(1, 2048 // width)
        short_rows[(triton.cdiv(n_rows, rows),)](x, out, n_rows, m, ROWS=rows, WIDTH=width)
        return out
    sms = multiprocessors(x.device)
    if n_rows <= sms // 4 and m >= LONG:
        # four programs for each multiprocessor, all rows together
        parts = min(triton.cdiv(m, BLOCK), 4 * sms // n_rows)
        chunk = triton.cdiv(triton.cdiv(m, parts), BLOCK) * BLOCK
        sums = torch.empty((n_rows, parts), dtype=torch.float32, device=x.device)
        parts_of_rows[(n_rows, parts)](x, sums, m, chunk, SIZE=BLOCK, num_warps=8)
        add_parts[(n_rows,)](sums, out, parts, SIZE=PARTIALS)
    else:
        parts_of_rows[(n_rows, 1)](x, out, m, m, SIZE=BLOCK, num_warps=8)
    return out
