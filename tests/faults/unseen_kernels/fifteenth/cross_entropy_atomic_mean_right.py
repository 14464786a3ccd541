"""Losses are added in float32 by atomics, and the program with the last ticket divides and converts; all strides are passed.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, target_ptr, sum_ptr, ticket_ptr, out_ptr, rows, classes, row_stride, stride, target_stride,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row * target_stride)
    largest = -float("inf")
    total = 0.0
    picked = 0.0
    for start in range(0, classes, BLOCK):
        at = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * row_stride + at * stride, mask=at < classes, other=-float("inf")).to(tl.float32)
        picked += tl.sum(tl.where(at == target, x, 0.0), axis=0)
        new = tl.maximum(largest, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base), axis=0)
        largest = new
    tl.atomic_add(sum_ptr, tl.log(total) + (largest - picked), sem="acq_rel")
    tl.debug_barrier()
    if tl.atomic_add(ticket_ptr, 1, sem="acq_rel") == rows - 1:
        tl.store(out_ptr, tl.atomic_add(sum_ptr, 0.0, sem="acq_rel") / rows)


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    total = torch.zeros(1, dtype=torch.float32, device=logits.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=logits.device)
    out = torch.full((), float("nan"), dtype=logits.dtype, device=logits.device)
    kernel[(rows,)](
        logits, target, total, ticket, out, rows, classes, *logits.stride(), target.stride(0),
        BLOCK=min(1024, triton.next_power_of_2(classes)),
    )
    return out
