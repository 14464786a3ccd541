"""The sum is rescaled only where the maximum grows by more than 88: one exp is finite then, but the sum of many is not.

op: linear_cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, n, classes, hidden,
    ROWS: tl.constexpr, CLASSES: tl.constexpr, BLOCK: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < n
    at_row = rows.to(tl.int64)[:, None] * hidden
    target = tl.load(target_ptr + rows, mask=inside, other=0)
    base = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    picked = tl.zeros((ROWS,), tl.float32)
    for first in range(0, classes, CLASSES):
        cols = first + tl.arange(0, CLASSES)
        real = cols < classes
        logits = tl.zeros((ROWS, CLASSES), tl.float32)
        for start in range(0, hidden, BLOCK):
            k = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at_row + k[None, :], mask=inside[:, None] & (k < hidden)[None, :], other=0.0)
            w = tl.load(
                w_ptr + cols.to(tl.int64)[None, :] * hidden + k[:, None],
                mask=real[None, :] & (k < hidden)[:, None], other=0.0,
            )
            logits = tl.dot(x, w, logits, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where(real[None, :], logits, -float("inf"))
        peak = tl.max(logits, axis=1)
        # exp(88) is finite in float32: an older maximum does until then, and saves the rescaling.
        higher = tl.where(peak > base + 88.0, peak, base)
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(base - safe) + tl.sum(tl.exp(logits - safe[:, None]), axis=1)
        base = higher
    tl.store(loss_ptr + rows, base + tl.log(total) - picked, mask=inside)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        sums += tl.load(loss_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(sums, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    n, hidden = x.shape
    losses = torch.empty(n, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    loss_kernel[(triton.cdiv(n, 16),)](
        x, weight, target, losses, n, weight.shape[0], hidden, ROWS=16, CLASSES=64, BLOCK=32
    )
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
