"""The workspace of maxima and sums of long rows has torch's default dtype: float32, unless the program sets a half type.

op: softmax
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * m + cols, numerator / tl.sum(numerator, axis=0), mask=cols < m)


@triton.jit
def stats_kernel(x_ptr, peaks_ptr, sums_ptr, m, parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(1).to(tl.int64), tl.program_id(0)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=0)
    base = tl.where(peak == -float("inf"), 0.0, peak)
    tl.store(peaks_ptr + row * parts + part, peak)
    tl.store(sums_ptr + row * parts + part, tl.sum(tl.exp(x - base), axis=0))


@triton.jit
def write_kernel(
    x_ptr, out_ptr, peaks_ptr, sums_ptr, m, parts, BLOCK: tl.constexpr, PARTS: tl.constexpr
):
    row, part = tl.program_id(1).to(tl.int64), tl.program_id(0)
    at = tl.arange(0, PARTS)
    peaks = tl.load(peaks_ptr + row * parts + at, mask=at < parts, other=-float("inf"))
    peaks = peaks.to(tl.float32)
    sums = tl.load(sums_ptr + row * parts + at, mask=at < parts, other=0.0).to(tl.float32)
    peak = tl.max(peaks, axis=0)
    total = tl.sum(sums * tl.exp(peaks - peak), axis=0)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, tl.exp(x - peak) / total, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    n = x.numel() // m
    BLOCK = 4096
    if m <= BLOCK:
        rows_kernel[(n,)](x, out, m, BLOCK=triton.next_power_of_2(m))
        return out
    parts = triton.cdiv(m, BLOCK)
    step = 32768  # rows a launch: the second dimension of a grid ends at 65535
    x_rows, out_rows = x.view(n, m), out.view(n, m)
    for first in range(0, n, step):
        some, to = x_rows[first : first + step], out_rows[first : first + step]
        peaks = torch.empty((len(some), parts), device=x.device)
        sums = torch.empty((len(some), parts), device=x.device)
        grid = (parts, len(some))
        stats_kernel[grid](some, peaks, sums, m, parts, BLOCK=BLOCK)
        write_kernel[grid](
            some, to, peaks, sums, m, parts, BLOCK=BLOCK, PARTS=triton.next_power_of_2(parts)
        )
    return out
