"""Tiles whose logits are 17 below the maximum are left out: one is nothing beside it, 100000 classes are not.

op: linear_cross_entropy
status: failed
cause: pruning
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, weight_ptr, target_ptr, loss_ptr, n_rows, n_classes, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1)
    peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, n_classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, hidden, BLOCK_K):
            ks = k + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=inside[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            weight = tl.load(
                weight_ptr + cols[None, :] * hidden + ks[:, None],
                mask=(cols < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            logits = tl.dot(x, weight, logits, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where((cols < n_classes)[None, :], logits, -float("inf"))
        top = tl.max(logits, axis=1)
        # exp(-17) is less than half a step of float32 below a sum of 1 or more: no need for exp.
        dull = (top < peak - 17.0) | ~inside
        if tl.min(dull.to(tl.int32), axis=0) == 0:
            new = tl.maximum(peak, top)
            safe = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(peak - safe) + tl.sum(tl.exp(logits - safe[:, None]), axis=1)
            peak = new
    tl.store(loss_ptr + rows, tl.log(total) + (peak - picked), mask=inside)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = x.new_empty(())
    loss_kernel[(triton.cdiv(n_rows, 32),)](
        x, weight, target, loss, n_rows, n_classes, hidden, BLOCK_M=32, BLOCK_N=128, BLOCK_K=32
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
