"""The running sum of exponentials is kept as its logarithm above the first block's maximum: far above it the many small steps of a plateau are rounded away.

op: cross_entropy
status: failed
cause: drift
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(logits_ptr, target_ptr, loss_ptr, n_classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_classes
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf")).to(tl.float32)
    base = tl.max(x, axis=0)
    base = tl.where(base == -float("inf"), 0.0, base)
    running = -float("inf")  # log of the sum of exp(x - base): one number, it can't overflow
    for start in range(0, n_classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf"))
        x = x.to(tl.float32) - base
        top = tl.max(x, axis=0)
        safe = tl.where(top == -float("inf"), 0.0, top)
        block = safe + tl.log(tl.sum(tl.exp(x - safe), axis=0))
        high = tl.maximum(running, block, propagate_nan=tl.PropagateNan.ALL)
        low = tl.minimum(running, block)
        gap = tl.where(low == -float("inf"), -float("inf"), low - high)
        running = high + tl.log(1.0 + tl.exp(gap))
    target = tl.load(target_ptr + row)
    valid = (target >= 0) & (target < n_classes)
    picked = tl.load(logits_ptr + target, mask=valid, other=float("nan")).to(tl.float32)
    tl.store(loss_ptr + row, running - (picked - base))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + rows, mask=rows < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_classes = logits.shape
    if not n_rows:
        return logits.new_full((), float("nan"))
    out = logits.new_empty(())
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    BLOCK = min(512, triton.next_power_of_2(n_classes))
    rows_kernel[(n_rows,)](logits, target, losses, n_classes, BLOCK=BLOCK)
    mean_kernel[(1,)](losses, out, n_rows, BLOCK=1024)
    return out
