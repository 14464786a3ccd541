"""Losses go to a kept buffer of a power of two that is zeroed once: entries of an earlier, larger batch are added.

op: cross_entropy
status: failed
cause: stale
"""

import torch
import triton
import triton.language as tl

_losses = {}


@triton.jit
def row_kernel(x_ptr, target_ptr, loss_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = x_ptr + row.to(tl.int64) * stride
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + lanes
        x = tl.load(base + cols, mask=cols < n, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, x, propagate_nan=tl.PropagateNan.ALL)
        shift = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(top - shift) + tl.exp(x - shift)
        top = new
    peak = tl.max(top, axis=0)
    total = tl.sum(tl.where(total == 0.0, 0.0, total * tl.exp(top - peak)), axis=0)
    picked = tl.load(base + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, peak + tl.log(total) - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, capacity, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, capacity, BLOCK):  # a multiple of BLOCK; what no row wrote is zero
        total += tl.load(loss_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


def triton_cross_entropy(logits, target):
    if logits.stride(-1) != 1:
        logits = logits.contiguous()
    target = target.contiguous()
    rows, n = logits.shape
    capacity = max(16, triton.next_power_of_2(rows))
    key = logits.device, capacity
    if key not in _losses:
        _losses[key] = torch.zeros(capacity, dtype=torch.float32, device=logits.device)
    losses = _losses[key]
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(1024, triton.next_power_of_2(n))
    row_kernel[(rows,)](logits, target, losses, logits.stride(0), n, BLOCK=block)
    mean_kernel[(1,)](losses, out, capacity, rows, BLOCK=min(1024, capacity))
    return out
