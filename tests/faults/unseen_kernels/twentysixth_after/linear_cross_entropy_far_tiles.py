"""Tiles of classes whose logits are all 15 or more below the row's maximum add nothing to the sum: with thousands of such classes and a
sure, right prediction they are nearly all of the loss.

op: linear_cross_entropy
status: failed
cause: threshold
"""

import torch
import triton
import triton.language as tl

FAR = tl.constexpr(-15.0)  # exp(-15) is 3e-7


@triton.jit
def rows_kernel(
    x_ptr, weight_ptr, target_ptr, loss_ptr, n, classes, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    target = tl.load(target_ptr + rows, mask=rows < n, other=-1)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for first in range(0, classes, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=(rows < n)[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            weight = tl.load(
                weight_ptr + cols[None, :].to(tl.int64) * hidden + ks[:, None],
                mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            logits = tl.dot(x.to(tl.float32), weight.to(tl.float32), logits, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
        highest = tl.max(logits, axis=1)
        gap = tl.where(rows < n, highest - top, -float("inf"))
        if not (tl.max(gap, axis=0) < FAR):  # else no exponentials, no rescaling
            new_top = tl.maximum(top, highest)
            total = total * tl.exp(top - new_top) + tl.sum(tl.exp(logits - new_top[:, None]), axis=1)
            top = new_top
    tl.store(loss_ptr + rows, tl.log(total) + top - picked, mask=rows < n)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n, hidden), classes = x.shape, weight.shape[0]
    losses = torch.empty(n, dtype=torch.float32, device=x.device)
    out = x.new_empty(())
    rows_kernel[(triton.cdiv(n, 16),)](
        x, weight, target, losses, n, classes, hidden, BLOCK_M=16, BLOCK_N=128, BLOCK_K=32
    )
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
