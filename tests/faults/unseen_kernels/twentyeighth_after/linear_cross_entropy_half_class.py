"""Class numbers are compared as float16, which holds whole numbers up to 2048 only: near a larger target several classes match.

op: linear_cross_entropy
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, rows, classes, hidden, x_stride, w_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    # A half type for the numbers that are compared in each tile: two lanes a register.
    target = tl.load(target_ptr + row, mask=row < rows, other=0).to(tl.float32).to(tl.float16)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    picked = tl.zeros((BM,), tl.float32)
    for first in range(0, classes, BN):
        col = first + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), tl.float32)
        for start in range(0, hidden, BK):
            ks = start + tl.arange(0, BK)
            x = tl.load(
                x_ptr + row[:, None].to(tl.int64) * x_stride + ks[None],
                mask=(row[:, None] < rows) & (ks[None] < hidden), other=0.0,
            )  # fmt: skip
            w = tl.load(
                w_ptr + col[None].to(tl.int64) * w_stride + ks[:, None],
                mask=(col[None] < classes) & (ks[:, None] < hidden), other=0.0,
            )  # fmt: skip
            logits = tl.dot(x, w, logits, input_precision="ieee")
        is_target = col.to(tl.float32).to(tl.float16)[None] == target[:, None]
        is_target = is_target & (col[None] < classes)
        picked += tl.sum(tl.where(is_target, logits, 0.0), axis=1)
        logits = tl.where(col[None] < classes, logits, float("-inf"))
        new = tl.maximum(top, tl.max(logits, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        top = new
    tl.store(loss_ptr + row, top + tl.log(total) - picked, mask=row < rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


def triton_linear_cross_entropy(x, weight, target):
    x = x if x.stride(-1) == 1 else x.contiguous()
    weight = weight if weight.stride(-1) == 1 else weight.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    losses = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(rows, 32),)](
        x, weight, target.contiguous(), losses, rows, classes, hidden, x.stride(0),
        weight.stride(0), BM=32, BN=64, BK=32,
    )  # fmt: skip
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
