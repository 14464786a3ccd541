"""Long rows are split; a part that is all minus infinity reports a maximum of 0, so rows below about -100 underflow.

op: softmax
status: failed
cause: guard
"""

import torch
import triton
import triton.language as tl

PART = 2048


@triton.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def part_kernel(x_ptr, stats_ptr, n_cols, parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=0)
    # -inf - -inf would be NaN in a part that is masked out altogether.
    peak = tl.where(peak == -float("inf"), 0.0, peak)
    at = stats_ptr + (row * parts + part) * 2
    tl.store(at, peak)
    tl.store(at + 1, tl.sum(tl.exp(x - peak), axis=0))


@triton.jit
def write_kernel(x_ptr, stats_ptr, out_ptr, n_cols, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    others = tl.arange(0, PARTS)
    at = stats_ptr + (row * parts + others) * 2
    peaks = tl.load(at, mask=others < parts, other=-float("inf"))
    sums = tl.load(at + 1, mask=others < parts, other=0.0)
    top = tl.max(peaks, axis=0)
    total = tl.sum(sums * tl.exp(peaks - top), axis=0)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, tl.exp(x - top) / total, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= 2 * PART:
        row_kernel[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
        return out
    parts = triton.cdiv(n_cols, PART)
    stats = torch.empty((n_rows, parts, 2), dtype=torch.float32, device=x.device)
    part_kernel[(n_rows, parts)](x, stats, n_cols, parts, BLOCK=PART)
    write_kernel[(n_rows, parts)](
        x, stats, out, n_cols, parts, PARTS=triton.next_power_of_2(parts), BLOCK=PART
    )
    return out
