"""Rows go in chunks so that the logits stay small; every chunk reads the first chunk's targets.

op: linear_cross_entropy
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl

LOGITS = 2**18


@triton.jit
def logits_kernel(
    x_ptr, w_ptr, out_ptr, M, N, K, xm, xk, wn, wk,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + ks[:, None] * wk + cols[None, :] * wn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc,
             mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row))
    tl.store(loss_ptr + row, tl.log(total) + largest - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    target = target.contiguous()
    chunk = min(n_rows, max(16, LOGITS // n_classes))
    logits = torch.empty((chunk, n_classes), dtype=torch.float32, device=x.device)
    losses = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    for start in range(0, n_rows, chunk):
        part = x[start : start + chunk]
        rows = part.shape[0]
        logits_kernel[(triton.cdiv(rows, 32), triton.cdiv(n_classes, 64))](
            part, weight, logits, rows, n_classes, hidden, x.stride(0), x.stride(1),
            weight.stride(0), weight.stride(1), BM=32, BN=64, BK=64,
        )
        loss_kernel[(rows,)](logits, target, losses[start:], n_classes, BLOCK=1024)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    mean_kernel[(1,)](losses, out, n_rows, BLOCK=256)
    return out
