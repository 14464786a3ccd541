"""A tile 16 or more below the running maximum is skipped, as if its sum were as small as one element: many such classes are the whole loss of a sure row.

op: cross_entropy
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_cols
    target = tl.load(target_ptr + row)
    peak = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        top = tl.max(tl.where(x != x, float("inf"), x), axis=0)  # a NaN is never skipped
        # exp(-16) is about the step of float32 at 1: such a tile is lost in the sum.
        if top > peak - 16.0:
            new = tl.maximum(peak, top)
            total = total * tl.exp(peak - new) + tl.sum(tl.exp(x - new), axis=0)
            peak = new
    picked = tl.load(logits_ptr + target).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (peak - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    if not n_rows:
        return logits.new_full((), float("nan"))
    out = logits.new_empty(())
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    loss_kernel[(n_rows,)](logits, target, loss, n_cols, BLOCK=BLOCK)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
