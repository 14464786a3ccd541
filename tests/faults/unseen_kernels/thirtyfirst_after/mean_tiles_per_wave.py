"""Many short rows: fewer programs are launched than the tiles were shared out to; the last rows are lost.

op: mean
status: failed
cause: grid
"""

import torch
import triton
import triton.language as tl

ROWS = 32  # a tile
SHORT, MANY = 16, 4096
CLUSTER = 16
MULTIPROCESSORS = 132


@triton.jit
def row_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


@triton.jit
def short_kernel(
    x_ptr, out_ptr, n_rows, m, per_program, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    first = tl.program_id(0) * per_program
    cols = tl.arange(0, BLOCK)
    for tile in range(first, first + per_program):
        rows = tile * ROWS + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (cols < m)[None, :]
        offsets = rows[:, None].to(tl.int64) * m + cols[None, :]
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + rows, tl.sum(x, axis=1) / m, mask=rows < n_rows)


def multiprocessors(device):
    if device.type != "cuda":
        return MULTIPROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    if n_rows >= MANY and m <= SHORT:
        slots = 2 * multiprocessors(x.device)
        tiles = triton.cdiv(n_rows, ROWS)
        per_program = triton.cdiv(tiles, slots)
        # Whole clusters only, so that neighbours share a cache.
        programs = min(tiles, slots // CLUSTER * CLUSTER)
        BLOCK = triton.next_power_of_2(m)
        short_kernel[(programs,)](x, out, n_rows, m, per_program, ROWS=ROWS, BLOCK=BLOCK)
    else:
        row_kernel[(n_rows,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
