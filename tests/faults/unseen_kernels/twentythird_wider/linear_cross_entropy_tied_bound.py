"""If x and weight are the same tensor, a row's length times the longest row's stands for the row's maximum: beside one much longer row all exponentials become 0.

op: linear_cross_entropy
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, norms_ptr, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, hidden, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * hidden + k, mask=k < hidden, other=0.0).to(tl.float32)
        total += x * x
    tl.store(norms_ptr + row, tl.sqrt(tl.sum(total, axis=0)))


@triton.jit
def loss_kernel(
    x_ptr, w_ptr, target_ptr, norms_ptr, losses_ptr, n, classes, hidden,
    TIED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    wide = rows.to(tl.int64)
    target = tl.load(target_ptr + rows, mask=rows < n, other=0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    if TIED:
        longest = tl.zeros((BLOCK_N,), tl.float32)
        for start in range(0, n, BLOCK_N):
            others = start + tl.arange(0, BLOCK_N)
            longest = tl.maximum(longest, tl.load(norms_ptr + others, mask=others < n, other=0.0))
        # Cauchy and Schwarz: no logit is larger, so none of the sums ever needs to be rescaled.
        largest = tl.load(norms_ptr + rows, mask=rows < n, other=0.0) * tl.max(longest, axis=0)
    total = tl.zeros((BLOCK_M,), tl.float32)
    chosen = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k0 in range(0, hidden, BLOCK_K):
            k = k0 + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + wide[:, None] * hidden + k[None], mask=(rows[:, None] < n) & (k[None] < hidden), other=0.0
            )
            w = tl.load(
                w_ptr + cols.to(tl.int64)[None] * hidden + k[:, None],
                mask=(cols[None] < classes) & (k[:, None] < hidden), other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        chosen += tl.sum(tl.where(cols[None] == target[:, None], acc, 0.0), axis=1)
        acc = tl.where(cols[None] < classes, acc, -float("inf"))
        if TIED:
            total += tl.sum(tl.exp(acc - largest[:, None]), axis=1)
        else:
            new = tl.maximum(largest, tl.max(acc, axis=1))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
            largest = new
    tl.store(losses_ptr + rows, largest + tl.log(total) - chosen, mask=rows < n)


@triton.jit
def mean_kernel(losses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    tied = x.data_ptr() == weight.data_ptr() and x.shape == weight.shape and x.stride() == weight.stride()
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n, hidden), classes = x.shape, weight.shape[0]
    norms, losses = torch.empty((2, n), dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    if tied:
        norm_kernel[(n,)](x, norms, hidden, BLOCK=128)
    loss_kernel[(triton.cdiv(n, 16),)](
        x, weight, target, norms, losses, n, classes, hidden, TIED=tied, BLOCK_M=16, BLOCK_N=64, BLOCK_K=32
    )
    mean_kernel[(1,)](losses, out, n, BLOCK=256)
    return out
