"""A tile of classes whose logits are all 10 below the largest so far adds nothing: but many such tiles add up.

op: linear_cross_entropy
status: failed
cause: cutoff
"""

import torch
import triton
import triton.language as tl

CUTOFF = 10.0  # exp(-10) is 4.5e-5, less than half an ulp of a float16


@triton.jit
def loss_kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, rows, classes, hidden, x_stride, w_stride,
    CUTOFF: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    ms = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    target = tl.load(target_ptr + ms, mask=ms < rows, other=0)
    x_row = x_ptr + ms.to(tl.int64)[:, None] * x_stride
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for first in range(0, classes, BLOCK_N):
        ns = first + tl.arange(0, BLOCK_N)
        w_row = w_ptr + ns.to(tl.int64)[None, :] * w_stride
        s = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, hidden, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K)
            in_x = (ms < rows)[:, None] & (ks < hidden)[None, :]
            in_w = (ns < classes)[None, :] & (ks < hidden)[:, None]
            x = tl.load(x_row + ks[None, :], mask=in_x, other=0.0)
            w = tl.load(w_row + ks[:, None], mask=in_w, other=0.0)
            s = tl.dot(x, w, s, input_precision="ieee")
        picked += tl.sum(tl.where(ns[None, :] == target[:, None], s, 0.0), axis=1)
        s = tl.where((ns < classes)[None, :], s, -float("inf"))
        top = tl.max(s, axis=1)
        # Past the likely classes a tile is below all rows' maxima: spare its exponentials. A NaN
        # is not below.
        below = (top < largest - CUTOFF) | (ms >= rows)
        if tl.min(below.to(tl.int32), axis=0) == 0:
            new = tl.maximum(largest, top, propagate_nan=tl.PropagateNan.ALL)
            safe = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(largest - safe) + tl.sum(tl.exp(s - safe[:, None]), axis=1)
            largest = new
    tl.store(loss_ptr + ms, tl.log(total) + (largest - picked), mask=ms < rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / rows)


def triton_linear_cross_entropy(x, weight, target):
    x = x if x.stride(1) == 1 else x.contiguous()
    weight = weight if weight.stride(1) == 1 else weight.contiguous()
    target = target.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    losses = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    loss_kernel[(triton.cdiv(rows, 16),)](
        x, weight, target, losses, rows, classes, hidden, x.stride(0), weight.stride(0),
        CUTOFF=CUTOFF, BLOCK_M=16, BLOCK_N=64, BLOCK_K=32,
    )
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
