"""A tile of classes 104 below the running maximum adds zero and is skipped, and with it the target's logit: wrong when the target lies in such a tile.

op: linear_cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, target_ptr, loss_ptr, n, classes, hidden, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ks = tl.arange(0, BK)
    target = tl.load(target_ptr + rows, mask=rows < n, other=-1)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, classes, BN):
        cols = start + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, hidden, BK):
            at = k + ks
            x = tl.load(x_ptr + rows[:, None] * hidden + at[None, :], mask=(rows < n)[:, None] & (at < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + cols[:, None] * hidden + at[None, :], mask=(cols < classes)[:, None] & (at < hidden)[None, :], other=0.0)
            logits += tl.dot(x.to(tl.float32), tl.trans(w.to(tl.float32)), input_precision="ieee")
        logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
        top = tl.max(logits, axis=1)
        # exp(-104) is zero in float32: such a tile changes no sum.
        nothing = (top - largest < -104.0) | (rows >= n)
        if tl.min(nothing.to(tl.int32), axis=0) == 0:
            new = tl.maximum(largest, top)
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
            picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
            largest = new
    tl.store(loss_ptr + rows, (largest - picked) + tl.log(total), mask=rows < n)


@triton.jit
def average(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    n, hidden = x.shape
    losses = torch.empty(n, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n, 16),)](x, weight, target, losses, n, weight.shape[0], hidden, BM=16, BN=32, BK=64)
    average[(1,)](losses, out, n, BLOCK=1024)
    return out
