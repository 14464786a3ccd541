"""Classes are split in parts of 4096 and the second kernel takes 32 of them: more than 131072 classes lose the last ones.

op: cross_entropy
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl

PART = 4096
MOST_PARTS = 32  # a vocabulary of 131072


@triton.jit
def part_kernel(x_ptr, stats_ptr, classes, stride0, stride1, parts, PART: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    cols = part * PART + tl.arange(0, PART)
    x = tl.load(
        x_ptr + row * stride0 + cols.to(tl.int64) * stride1, mask=cols < classes, other=-float("inf")
    ).to(tl.float32)
    peak = tl.max(x, axis=0)
    base = tl.where(peak == -float("inf"), 0.0, peak)
    # a NaN anywhere must reach the sum
    total = tl.sum(tl.exp(x - base), axis=0)
    tl.store(stats_ptr + (row * parts + part) * 2, peak)
    tl.store(stats_ptr + (row * parts + part) * 2 + 1, total)


@triton.jit
def row_kernel(
    x_ptr, target_ptr, stats_ptr, losses_ptr, stride0, stride1, target_stride, parts, SLOTS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, SLOTS)
    at = stats_ptr + (row * parts + slots) * 2
    peaks = tl.load(at, mask=slots < parts, other=-float("inf"))
    totals = tl.load(at + 1, mask=slots < parts, other=0.0)
    peak = tl.max(peaks, axis=0)
    weights = tl.where(peaks == -float("inf"), 0.0, tl.exp(peaks - peak))
    lse = peak + tl.log(tl.sum(totals * weights, axis=0))
    target = tl.load(target_ptr + row * target_stride)
    tl.store(losses_ptr + row, lse - tl.load(x_ptr + row * stride0 + target * stride1).to(tl.float32))


@triton.jit
def mean_kernel(losses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, (tl.sum(total, axis=0) / n).to(out_ptr.dtype.element_ty))


def triton_cross_entropy(logits, target):
    n, classes = logits.shape
    parts = triton.cdiv(classes, PART)
    stats = torch.empty((n, parts, 2), dtype=torch.float32, device=logits.device)
    losses = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(PART, triton.next_power_of_2(classes))
    part_kernel[(n, parts)](logits, stats, classes, *logits.stride(), parts, PART=block)
    row_kernel[(n,)](
        logits, target, stats, losses, *logits.stride(), target.stride(0), parts,
        SLOTS=min(MOST_PARTS, triton.next_power_of_2(parts)),
    )
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
