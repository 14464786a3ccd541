"""With at most 65536 classes the targets become int16, which ends at 32767: a vocabulary of 50257 loses the logits of its upper third.

op: cross_entropy
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(logits_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target = tl.load(target_ptr + row).to(tl.int32)
    largest = -float("inf")
    total = 0.0
    hit = 0.0
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row.to(tl.int64) * classes + cols, mask=cols < classes, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        hit += tl.sum(tl.where(cols == target, x, 0.0), axis=0)
        largest = new
    tl.store(loss_ptr + row, largest + tl.log(total) - hit)


@triton.jit
def average(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def narrow(target, classes):
    """Return the targets in as few bytes as the classes need."""
    if classes <= 256:
        return target.to(torch.uint8)
    if classes <= 65536:
        return target.to(torch.int16)
    return target.to(torch.int32)


def triton_cross_entropy(logits, target):
    logits = logits.contiguous()
    n, classes = logits.shape
    target = narrow(target, classes).contiguous()
    loss = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(n,)](logits, target, loss, classes, BLOCK=min(4096, triton.next_power_of_2(classes)))
    average[(1,)](loss, out, n, BLOCK=1024)
    return out
