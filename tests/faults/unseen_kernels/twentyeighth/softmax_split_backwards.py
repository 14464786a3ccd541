"""Right: several programs share a row, numbered from its end, and write a maximum and a sum each in a workspace that nobody cleared.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl

PART = 512
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def finite(peak):
    return tl.where(peak == -float("inf"), 0.0, peak)


@triton.jit
def stats_kernel(x_ptr, stats_ptr, n_cols, n_parts, PART: tl.constexpr):
    part = n_parts - 1 - tl.program_id(1)
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    cols = n_cols - 1 - part * PART - tl.arange(0, PART)  # the last part, at the start, is short
    x = tl.load(
        x_ptr + row.to(tl.int64) * n_cols + cols, mask=cols >= 0, other=-float("inf")
    ).to(tl.float32)
    peak = tl.max(x, axis=0)
    total = tl.sum(tl.exp2((x - finite(peak)) * LOG2_E), axis=0)
    at = (row.to(tl.int64) * n_parts + part) * 2
    tl.store(stats_ptr + at, peak)
    tl.store(stats_ptr + at + 1, total)


@triton.jit
def write_kernel(
    x_ptr, stats_ptr, out_ptr, n_cols, n_parts, PART: tl.constexpr, PARTS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    inside = parts < n_parts
    at = stats_ptr + (row * n_parts + parts) * 2
    peaks = tl.load(at, mask=inside, other=-float("inf"))
    totals = tl.load(at + 1, mask=inside, other=0.0)
    peak = finite(tl.max(peaks, axis=0))
    # A part that is all minus infinity counts 0 * exp2(-inf).
    total = tl.sum(totals * tl.exp2((peaks - peak) * LOG2_E), axis=0)
    cols = tl.program_id(1) * PART + tl.arange(0, PART)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, tl.exp2((x - peak) * LOG2_E) / total, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        n_parts = triton.cdiv(n_cols, PART)
        stats = torch.empty((n_rows, n_parts, 2), dtype=torch.float32, device=x.device)
        stats_kernel[(n_rows, n_parts)](x, stats, n_cols, n_parts, PART=PART)
        write_kernel[(n_rows, n_parts)](
            x, stats, out, n_cols, n_parts, PART=PART, PARTS=triton.next_power_of_2(n_parts)
        )
    return out
