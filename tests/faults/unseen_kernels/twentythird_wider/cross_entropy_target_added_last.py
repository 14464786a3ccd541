"""The target's exponential is left out of the running sum and added at the end, at the maximum of the others: a target far above them makes it infinite.

op: cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, target_ptr, losses_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    x_ptr += row * classes
    own = tl.load(x_ptr + target).to(tl.float32)
    largest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # The target's own term would only be rounded among the others: it comes last.
        others = (cols < classes) & (cols != target)
        x = tl.load(x_ptr + cols, mask=others, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base), axis=0)
        largest = new
    base = tl.where(largest == -float("inf"), own, largest)  # one class, or all others masked
    total += tl.exp(own - base)
    tl.store(losses_ptr + row, tl.log(total) + (base - own))


@triton.jit
def mean_kernel(losses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, classes = logits.shape
    losses = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    row_kernel[(n,)](logits, target, losses, classes, BLOCK=min(1024, triton.next_power_of_2(classes)))
    mean_kernel[(1,)](losses, out, n, BLOCK=256)
    return out
