"""The last program takes the mean and sets the counter back for the next call.

op: cross_entropy
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr,
    t_ptr,
    loss_ptr,
    counter_ptr,
    out_ptr,
    rows,
    n_cols,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    largest, total = -float("inf"), 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    picked = tl.load(x_ptr + row * n_cols + tl.load(t_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))
    tl.debug_barrier()
    before = tl.atomic_add(counter_ptr, 1)
    if before == rows - 1:
        acc = tl.zeros((ROWS,), tl.float32)
        for start in range(0, rows, ROWS):
            i = start + tl.arange(0, ROWS)
            acc += tl.load(loss_ptr + i, mask=i < rows, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(acc, axis=0) / rows)
        tl.atomic_xchg(counter_ptr, 0)


COUNTERS = {}


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    if logits.device not in COUNTERS:
        COUNTERS[logits.device] = torch.zeros(1, dtype=torch.int32, device=logits.device)
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(rows,)](
        logits,
        target,
        losses,
        COUNTERS[logits.device],
        out,
        rows,
        classes,
        ROWS=512,
        BLOCK=min(4096, triton.next_power_of_2(classes)),
    )
    return out
