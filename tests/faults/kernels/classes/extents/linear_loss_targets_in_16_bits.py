"""The targets are converted to int16, which ends at 32,767 classes.

op: linear_cross_entropy
status: failed
cause: int_overflow
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr,
    w_ptr,
    t_ptr,
    loss_ptr,
    rows,
    classes,
    hidden,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    target = tl.load(t_ptr + r, mask=r < rows, other=0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    picked = tl.zeros((BM,), tl.float32)
    for start in range(0, classes, BN):
        c = start + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for first in range(0, hidden, BK):
            h = first + tl.arange(0, BK)
            x = tl.load(
                x_ptr + r[:, None] * hidden + h[None, :],
                mask=(r < rows)[:, None] & (h < hidden)[None, :],
                other=0.0,
            )
            w = tl.load(
                w_ptr + c[None, :].to(tl.int64) * hidden + h[:, None],
                mask=(c < classes)[None, :] & (h < hidden)[:, None],
                other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        acc = tl.where((c < classes)[None, :], acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        hit = c[None, :] == target[:, None]
        picked += tl.sum(tl.where(hit, acc, 0.0), axis=1)
        largest = new
    tl.store(loss_ptr + r, largest + tl.log(total) - picked, mask=r < rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.to(torch.int16)
    (rows, hidden), classes = x.shape, weight.shape[0]
    losses = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    BN = 1024 if classes > 8192 else 128
    kernel[(triton.cdiv(rows, 32),)](
        x, weight, target, losses, rows, classes, hidden, BM=32, BN=BN, BK=64
    )
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
