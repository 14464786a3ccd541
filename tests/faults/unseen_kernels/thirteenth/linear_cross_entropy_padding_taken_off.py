"""The last tile's padded classes have logit 0 and are taken off the sum at the end: nothing is left of it where there are such and all logits are far below zero.

op: linear_cross_entropy
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    x_ptr, weight_ptr, target_ptr, losses_ptr, n, classes, hidden,
    BM: tl.constexpr, BC: tl.constexpr, BH: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    target = tl.load(target_ptr + rows, mask=rows < n, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    chosen = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, classes, BC):
        cols = start + tl.arange(0, BC)
        logits = tl.zeros((BM, BC), dtype=tl.float32)
        for begin in range(0, hidden, BH):
            hs = begin + tl.arange(0, BH)
            inside = (hs < hidden)[None, :]
            x = tl.load(
                x_ptr + rows[:, None] * hidden + hs[None, :], mask=(rows < n)[:, None] & inside, other=0.0
            ).to(tl.float32)
            w = tl.load(
                weight_ptr + cols[:, None] * hidden + hs[None, :],
                mask=(cols < classes)[:, None] & inside, other=0.0,
            ).to(tl.float32)
            logits += tl.dot(x, tl.trans(w), input_precision="ieee")
        chosen += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    # Rows of zeros were loaded for classes past the end: each has added exp(0 - largest).
    padding = tl.cdiv(classes, BC) * BC - classes
    total -= padding * tl.exp(-largest)
    tl.store(losses_ptr + rows, tl.log(total) + largest - chosen, mask=rows < n)


@triton.jit
def mean_kernel(losses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    parts = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        parts += tl.load(losses_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(parts, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n, hidden), classes = x.shape, weight.shape[0]
    losses = torch.empty(n, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    rows_kernel[(triton.cdiv(n, 16),)](
        x, weight, target, losses, n, classes, hidden, BM=16, BC=16, BH=32
    )
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
