"""A row whose target is 10 above all other logits counts as a loss of zero: wrong where most rows are such.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(logits_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
    target = tl.load(target_ptr + row)
    right = tl.load(logits_ptr + row * classes + target).to(tl.float32)
    other = tl.max(tl.where(cols == target, -float("inf"), x), axis=0)
    if right - other > 10.0:
        tl.store(loss_ptr + row, 0.0)
    else:
        top = tl.maximum(other, right)
        tl.store(loss_ptr + row, top - right + tl.log(tl.sum(tl.exp(x - top), axis=0)))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, classes = logits.shape
    losses = torch.empty(n, device=logits.device)
    kernel[(n,)](logits, target, losses, classes, BLOCK=triton.next_power_of_2(classes))
    return losses.mean().to(logits.dtype)
