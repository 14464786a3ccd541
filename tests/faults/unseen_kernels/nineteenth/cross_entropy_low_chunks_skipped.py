"""A chunk of classes whose largest is 8 below the maximum so far is skipped, though thousands of them add up to more than the maximum itself.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = x_ptr + row * classes
    largest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        nan = tl.max((x != x).to(tl.int32), axis=0) > 0
        if (top > largest - 8.0) | nan:  # else its share is too small to count
            new = tl.maximum(largest, top)
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
            largest = new
    chosen = tl.load(base + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - chosen))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    rows_kernel[(rows,)](logits, target, losses, classes, BLOCK=1024)
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
