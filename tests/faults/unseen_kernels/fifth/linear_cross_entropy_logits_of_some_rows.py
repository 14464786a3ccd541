"""Nothing wrong: the logits of 48 rows at a time are stored in a float32 workspace; three kernels, launched in turns.

op: linear_cross_entropy
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
ROWS = 48


@triton.jit
def logits_kernel(
    x_ptr, w_ptr, logits_ptr, n_rows, n_classes, hidden, x_row, x_col, w_row, w_col,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(1) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, hidden, BK):
        ks = start + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * x_row + ks[None, :] * x_col,
                    mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * w_row + ks[:, None] * w_col,
                    mask=(cols < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0)
        acc = tl.dot(x.to(tl.float32), w.to(tl.float32), acc, input_precision="ieee")
    tl.store(logits_ptr + rows[:, None] * n_classes + cols[None, :], acc,
             mask=(rows < n_rows)[:, None] & (cols < n_classes)[None, :])


@triton.jit
def loss_kernel(logits_ptr, target_ptr, target_step, loss_ptr, n_classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_classes
    most = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf")))
    bound = tl.max(most, axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf"))
        total += tl.exp(x - bound)
    picked = tl.load(logits_ptr + tl.load(target_ptr + row * target_step))
    tl.store(loss_ptr + row, tl.log(tl.sum(total, axis=0)) + (bound - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    (n_rows, hidden), n_classes = x.shape, len(weight)
    logits = torch.empty((min(ROWS, n_rows), n_classes), dtype=torch.float32, device=x.device)
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    for first in range(0, n_rows, ROWS):
        part = x[first : first + ROWS]
        grid = (triton.cdiv(n_classes, 64), triton.cdiv(len(part), 16))
        logits_kernel[grid](
            part, weight, logits, len(part), n_classes, hidden, *part.stride(), *weight.stride(),
            BM=16, BN=64, BK=32,
        )
        loss_kernel[(len(part),)](
            logits, target[first:], target.stride(0), loss[first:], n_classes, BLOCK=256
        )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
