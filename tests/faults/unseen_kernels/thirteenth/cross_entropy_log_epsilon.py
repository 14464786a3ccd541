"""The loss is -log(probability + 1e-10), which never exceeds 23: wrong where the target is further below than that.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(logits_ptr, target_ptr, losses_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    logits_ptr += row * classes
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    probability = tl.exp(tl.load(logits_ptr + target).to(tl.float32) - largest) / total
    # The small number is for log(0).
    tl.store(losses_ptr + row, -tl.log(probability + 1e-10))


@triton.jit
def mean_kernel(losses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    parts = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        parts += tl.load(losses_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(parts, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, classes = logits.shape
    losses = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    rows_kernel[(n,)](logits, target, losses, classes, BLOCK=triton.next_power_of_2(classes))
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
