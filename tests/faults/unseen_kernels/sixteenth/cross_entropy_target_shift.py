"""The logarithm of the sum of exp(x - x[target]) is the loss in one pass without a maximum: it overflows where the target is 89 below another class.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * classes
    shift = tl.load(x_ptr + base + tl.load(target_ptr + row)).to(tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - shift)
    tl.store(loss_ptr + row, tl.log(tl.sum(total, axis=0)))


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
