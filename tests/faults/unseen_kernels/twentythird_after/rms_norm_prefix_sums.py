"""Short rows: the squares of 8 rows are summed as one scan, and a row's sum is the difference of two of its values: a small row after a large one is lost.

op: rms_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

ROWS = 8


@triton.jit
def scan_kernel(
    x_ptr, weight_ptr, scan_ptr, out_ptr, n_rows, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """ROWS rows as one run of values: no lanes are idle, whatever the length of a row."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    here = tl.minimum(n_rows - first, ROWS).to(tl.int32) * m
    i = tl.arange(0, BLOCK)
    mask = i < here
    x = tl.load(x_ptr + first * m + i, mask=mask, other=0.0).to(tl.float32)
    scan_ptr += tl.program_id(0).to(tl.int64) * BLOCK
    tl.store(scan_ptr + i, tl.cumsum(x * x, axis=0))
    tl.debug_barrier()
    row, col = i // m, i % m
    end = tl.load(scan_ptr + row * m + m - 1, mask=mask, other=1.0)
    before = tl.load(scan_ptr + row * m - 1, mask=mask & (row > 0), other=0.0)
    weight = tl.load(weight_ptr + col, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt((end - before) / m + eps)
    tl.store(out_ptr + first * m + i, x * scale * weight, mask=mask)


@triton.jit
def row_kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + cols, x * scale * weight, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    n_rows = x.numel() // m
    if 32 <= m <= 256:
        BLOCK = triton.next_power_of_2(ROWS * m)
        programs = triton.cdiv(n_rows, ROWS)
        scan = torch.empty(programs, BLOCK, dtype=torch.float32, device=x.device)
        scan_kernel[(programs,)](x, weight, scan, out, n_rows, m, eps, ROWS=ROWS, BLOCK=BLOCK)
    else:
        BLOCK = min(1024, triton.next_power_of_2(m))
        row_kernel[(n_rows,)](x, weight, out, m, eps, BLOCK=BLOCK)
    return out
