"""Past 4,096 rows the losses are averaged for 1,024 rows at a time, and then these averages, with the same weight for a last group that has fewer.

op: linear_cross_entropy
status: failed
cause: limit
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, rows, classes, hidden, x_r, x_h, w_c, w_h, stride_t,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    target = tl.load(target_ptr + i.to(tl.int64) * stride_t, mask=i < rows, other=0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for first in range(0, classes, BLOCK_N):
        c = first + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, hidden, BLOCK_K):
            h = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
            x = tl.load(
                x_ptr + i[:, None].to(tl.int64) * x_r + h[None, :] * x_h,
                mask=(i < rows)[:, None] & (h < hidden)[None, :], other=0.0,
            )
            w = tl.load(
                w_ptr + c[None, :].to(tl.int64) * w_c + h[:, None] * w_h,
                mask=(h < hidden)[:, None] & (c < classes)[None, :], other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        picked += tl.sum(tl.where(c[None, :] == target[:, None], acc, 0.0), axis=1)
        acc = tl.where((c < classes)[None, :], acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        largest = new
    tl.store(loss_ptr + i, largest + tl.log(total) - picked, mask=i < rows)


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, length, BLOCK: tl.constexpr):
    """Return the mean of each length values of x."""
    first = tl.program_id(0) * length
    last = tl.minimum(first + length, n)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(first, last, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + i, mask=i < last, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total, axis=0) / (last - first))


def triton_linear_cross_entropy(x, weight, target):
    (rows, hidden), classes = x.shape, weight.shape[0]
    losses = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    loss_kernel[(triton.cdiv(rows, 64),)](
        x, weight, target, losses, rows, classes, hidden,
        *x.stride(), *weight.stride(), target.stride(0), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )
    if rows > 4096:  # too much for one program: in two steps
        groups = triton.cdiv(rows, 1024)
        means = torch.empty(groups, dtype=torch.float32, device=x.device)
        mean_kernel[(groups,)](losses, means, rows, 1024, BLOCK=1024)
        losses, rows = means, groups
    mean_kernel[(1,)](losses, out, rows, rows, BLOCK=1024)
    return out
