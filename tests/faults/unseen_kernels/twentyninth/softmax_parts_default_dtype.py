"""The workspace of the parts of a long row is allocated without a dtype: half types where they are torch's default.

op: softmax
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl

PART = 4096


@triton.jit
def row_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + base + cols, e / tl.sum(e, axis=0), mask=cols < m)


@triton.jit
def part_kernel(x_ptr, peaks_ptr, sums_ptr, m, parts, PART: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * PART + tl.arange(0, PART)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - tl.where(peak == -float("inf"), 0.0, peak)), axis=0)
    tl.store(peaks_ptr + row * parts + part, peak)
    tl.store(sums_ptr + row * parts + part, total)


@triton.jit
def write_kernel(x_ptr, out_ptr, peaks_ptr, sums_ptr, m, parts, PART: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    all_parts = tl.arange(0, BLOCK)
    inside = all_parts < parts
    peaks = tl.load(peaks_ptr + row * parts + all_parts, mask=inside, other=-float("inf")).to(tl.float32)
    sums = tl.load(sums_ptr + row * parts + all_parts, mask=inside, other=0.0).to(tl.float32)
    peak = tl.max(peaks, axis=0)
    total = tl.sum(sums * tl.exp(peaks - peak), axis=0)
    cols = tl.program_id(1) * PART + tl.arange(0, PART)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + row * m + cols, tl.exp(x - peak) / total, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    rows = x.numel() // m
    if m <= PART:
        row_kernel[(rows,)](x, out, m, BLOCK=triton.next_power_of_2(m))
        return out
    parts = triton.cdiv(m, PART)
    peaks, sums = torch.empty((2, rows, parts), device=x.device)
    part_kernel[(rows, parts)](x, peaks, sums, m, parts, PART=PART)
    write_kernel[(rows, parts)](
        x, out, peaks, sums, m, parts, PART=PART, BLOCK=triton.next_power_of_2(parts)
    )
    return out
