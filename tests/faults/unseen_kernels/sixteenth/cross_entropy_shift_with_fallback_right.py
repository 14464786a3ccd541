"""The sum of exp(x - x[target]) over the other classes gives the loss in one pass; a row with a class more than 60 above its target, or a target of -inf, is summed again below its maximum.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * classes
    target = tl.load(target_ptr + row)
    shift = tl.load(x_ptr + base + target).to(tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    highest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        total += tl.where(at == target, 0.0, tl.exp(x - shift))
        highest = tl.maximum(highest, x)
    largest = tl.max(highest, axis=0)
    # log(1 + others), exact for small ones too
    others = tl.sum(total, axis=0)
    one = 1.0 + others
    loss = tl.where(one == 1.0, others, tl.log(one) * (others / (one - 1.0)))
    if (shift > -float("inf")) & (largest - shift <= 60.0):
        tl.store(loss_ptr + row, loss)
    else:
        again = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, classes, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
            again += tl.exp(x - largest)
        tl.store(loss_ptr + row, (largest - shift) + tl.log(tl.sum(again, axis=0)))


@triton.jit
def mean(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, classes = logits.shape
    losses = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(n,)](logits, target, losses, classes, BLOCK=1024)
    mean[(1,)](losses, out, n, BLOCK=1024)
    return out
