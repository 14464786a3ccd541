"""Blocks of classes whose maximum is 10 below the running one are skipped: with 100,000 classes they are a third of the sum.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        # Nothing in this block weighs more than exp(-10): no exponentials are needed.
        negligible = top < largest - 10.0
        if not negligible:
            new = tl.maximum(largest, top)
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
            largest = new
    picked = tl.load(x_ptr + row * classes + tl.load(target_ptr + row)).to(tl.float32)
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
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(rows,)](logits, target, losses, classes, BLOCK=1024)
    average[(1,)](losses, out, rows, BLOCK=1024)
    return out
