"""A block of classes 40 below the maximum so far is skipped, and with it the target's logit where the target is in that block.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def losses(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    picked = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        best = tl.max(x, axis=0)
        low = best < largest - 40.0
        if not low:  # exp(-40) changes nothing in float32
            new = tl.maximum(largest, best)
            shift = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
            picked += tl.sum(tl.where(cols == target, x, 0.0), axis=0)
            largest = new
    tl.store(loss_ptr + row, largest + tl.log(total) - picked)


@triton.jit
def average(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    losses[(rows,)](logits, target, loss, classes, BLOCK=min(4096, triton.next_power_of_2(classes)))
    average[(1,)](loss, out, rows, BLOCK=1024)
    return out
