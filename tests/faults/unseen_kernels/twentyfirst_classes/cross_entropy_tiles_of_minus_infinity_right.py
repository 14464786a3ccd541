"""An online sum that shifts by 0 as long as the maximum is minus infinity: right for masked classes in the first tiles, and NaN where the reference has it.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(logits_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * classes
    largest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + base + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
        largest = new
    picked = tl.load(logits_ptr + base + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, classes = logits.shape
    loss = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    rows_kernel[(n,)](logits, target, loss, classes, BLOCK=min(512, triton.next_power_of_2(classes)))
    mean_kernel[(1,)](loss, out, n, BLOCK=512)
    return out
