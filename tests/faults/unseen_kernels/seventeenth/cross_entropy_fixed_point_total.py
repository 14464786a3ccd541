"""The losses are added as integers, 15 bits after the point, to be the same in any order: a total over 65536 wraps round.

op: cross_entropy
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, target_ptr, total_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, x)
    top = tl.max(largest, axis=0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * classes + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        sums += tl.exp(x - top)
    target = tl.load(target_ptr + row)
    chosen = tl.load(x_ptr + row * classes + target).to(tl.float32)
    loss = tl.log(tl.sum(sums, axis=0)) + (top - chosen)
    # Integer atomics: the sum does not depend on the order of the programs.
    tl.atomic_add(total_ptr, tl.floor(loss * 32768.0 + 0.5).to(tl.int32))


@triton.jit
def mean_kernel(total_ptr, out_ptr, rows):
    total = tl.load(total_ptr).to(tl.float32) / 32768.0
    tl.store(out_ptr, total / rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    total = torch.zeros(1, dtype=torch.int32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    rows_kernel[(rows,)](logits, target, total, classes, BLOCK=min(1024, triton.next_power_of_2(classes)))
    mean_kernel[(1,)](total, out, rows)
    return out
