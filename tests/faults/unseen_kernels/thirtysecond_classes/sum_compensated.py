"""Right: few long rows are split by stride, not by blocks, and added with their rounding errors, unless these are of infinities.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_exactly(total, error, x):
    """Knuth's sum of two: what it loses goes into the error."""
    new = total + x
    part = new - total
    lost = (total - (new - part)) + (x - part)
    return new, error + lost


@triton.jit
def join(total, error):
    # After an infinity or a NaN the error is NaN, while the total itself is right.
    return tl.where(tl.abs(error) < float("inf"), total + error, total)


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    error = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        total, error = add_exactly(total, error, x)
    tl.store(out_ptr + row, tl.sum(join(total, error), axis=0))


@triton.jit
def parts_kernel(x_ptr, totals_ptr, m, parts, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    error = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * BLOCK, m, parts * BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        total, error = add_exactly(total, error, x)
    lanes = tl.arange(0, BLOCK)
    at = totals_ptr + (row * parts + part) * 2 * BLOCK + lanes
    tl.store(at, total)
    tl.store(at + BLOCK, error)


@triton.jit
def join_kernel(totals_ptr, out_ptr, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    error = tl.zeros((BLOCK,), tl.float32)
    for back in range(parts):
        part = parts - 1 - back
        at = totals_ptr + (row * parts + part) * 2 * BLOCK + lanes
        total, error = add_exactly(total, error, tl.load(at))
        error += tl.load(at + BLOCK)
    tl.store(out_ptr + row, tl.sum(join(total, error), axis=0))


def triton_sum(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    m, n_rows = x.shape[-1], out.numel()
    BLOCK = min(512, triton.next_power_of_2(max(m, 1)))
    if n_rows < 8 and m > 8 * BLOCK:
        parts = min(7, triton.cdiv(m, 4 * BLOCK))  # an odd number of programs, interleaved
        totals = torch.empty((n_rows, parts, 2, BLOCK), dtype=torch.float32, device=x.device)
        parts_kernel[(parts, n_rows)](x, totals, m, parts, BLOCK=BLOCK)
        join_kernel[(n_rows,)](totals, out, parts, BLOCK=BLOCK)
    else:
        rows_kernel[(n_rows,)](x, out, m, BLOCK=BLOCK)
    return out
