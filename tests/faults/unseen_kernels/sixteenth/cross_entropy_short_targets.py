"""Targets go to the kernel as int16 if there are at most 65536 classes: those from 32768 on become negative and match no class.

op: cross_entropy
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * classes
    target = tl.load(target_ptr + row)
    largest = -float("inf")
    total = 0.0
    hit = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        # the target's logit is in one of the tiles: no second trip to memory for it
        hit += tl.where(at == target, x, 0.0)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    tl.store(loss_ptr + row, largest + tl.log(total) - tl.sum(hit, axis=0))


@triton.jit
def mean(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits = logits.contiguous()
    n, classes = logits.shape
    narrow = torch.empty(n, dtype=torch.int16 if classes <= 65536 else torch.int32, device=target.device)
    narrow.copy_(target)
    losses = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(n,)](logits, narrow, losses, classes, BLOCK=1024)
    mean[(1,)](losses, out, n, BLOCK=1024)
    return out
