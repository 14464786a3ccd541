"""Losses are added as integers (so that the order does not matter): NaN and infinite losses become some number.

op: cross_entropy
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl

ONE: tl.constexpr = tl.constexpr(4294967296.0)  # 2**32: steps of 2e-10, sums up to 2e9


@triton.jit
def loss_kernel(logits_ptr, target_ptr, total_ptr, n_classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_classes
    lanes = tl.arange(0, BLOCK)
    peak = -float("inf")
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        x = tl.load(logits_ptr + start + lanes, mask=lanes < n_classes - start, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(peak, tl.max(x, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(peak - safe) + tl.exp(x - safe)
        peak = new
    picked = tl.load(logits_ptr + tl.load(target_ptr + row)).to(tl.float32)
    loss = tl.log(tl.sum(total, axis=0)) + (peak - picked)
    # Integers add up to the same sum in any order: two runs give the same bits.
    fixed = (loss.to(tl.float64) * ONE + 0.5).to(tl.int64)
    tl.atomic_add(total_ptr, fixed, sem="relaxed")


@triton.jit
def mean_kernel(total_ptr, out_ptr, n_rows):
    total = tl.load(total_ptr).to(tl.float64)
    tl.store(out_ptr, (total / ONE / n_rows).to(tl.float32))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_classes = logits.shape
    total = torch.zeros(1, dtype=torch.int64, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(2048, triton.next_power_of_2(n_classes))
    loss_kernel[(n_rows,)](logits, target, total, n_classes, BLOCK=block)
    mean_kernel[(1,)](total, out, n_rows)
    return out
