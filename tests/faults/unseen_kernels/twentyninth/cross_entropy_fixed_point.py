"""Losses are added as 64-bit integers, in units of 2^-40, so that their order does not matter: a sum of 2^23 or more wraps.

op: cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, total_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * classes + cols, mask=cols < classes, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), axis=0)
        largest = new
    target = tl.load(target_ptr + row)
    loss = tl.log(total) + (largest - tl.load(logits_ptr + row * classes + target).to(tl.float32))
    # Integers add to the same sum in any order: the loss is the same in every run.
    tl.atomic_add(total_ptr, (loss * 1099511627776.0).to(tl.int64))


@triton.jit
def mean_kernel(total_ptr, out_ptr, rows):
    tl.store(out_ptr, tl.load(total_ptr).to(tl.float32) / 1099511627776.0 / rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    total = torch.zeros((), dtype=torch.int64, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    BLOCK = min(4096, triton.next_power_of_2(classes))
    loss_kernel[(rows,)](logits, target, total, classes, BLOCK=BLOCK)
    mean_kernel[(1,)](total, out, rows)
    return out
