"""Right: each part takes every n-th element, and leaves its maximum and sum as the halves of one int64; parts of -inf add nothing.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, stats_ptr, n_cols, parts, PART: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    cols = part + tl.arange(0, PART) * parts
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=0)
    shift = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(tl.exp(x - shift), axis=0)
    high = peak.to(tl.int32, bitcast=True).to(tl.int64) << 32
    low = total.to(tl.int32, bitcast=True).to(tl.int64)  # not negative, or NaN
    tl.store(stats_ptr + row * parts + part, high | (low & 0xFFFFFFFF))


@triton.jit
def write_kernel(x_ptr, stats_ptr, out_ptr, n_cols, parts, PART: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    ps = tl.arange(0, PARTS)
    # The other value is a maximum of -inf with a sum of 0.
    stats = tl.load(stats_ptr + row * parts + ps, mask=ps < parts, other=-(0x00800000 << 32))
    peaks = (stats >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    sums = stats.to(tl.int32).to(tl.float32, bitcast=True)
    peak = tl.max(peaks, axis=0)
    shift = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(sums * tl.exp(peaks - shift), axis=0)
    cols = tl.program_id(1) * PART + tl.arange(0, PART)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, tl.exp(x - shift) / total, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    PART = min(512, triton.next_power_of_2(n_cols))
    parts = triton.cdiv(n_cols, PART)
    stats = torch.empty((n_rows, parts), dtype=torch.int64, device=x.device)
    part_kernel[(n_rows, parts)](x, stats, n_cols, parts, PART=PART)
    write_kernel[(n_rows, parts)](x, stats, out, n_cols, parts, PART=PART, PARTS=triton.next_power_of_2(parts))
    return out
