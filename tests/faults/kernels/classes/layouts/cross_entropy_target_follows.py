"""The logits are read by their strides, the targets as if they were dense.

op: cross_entropy
status: failed
cause: wrong_stride
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_loss(x_ptr, t_ptr, loss_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(
            x_ptr + row * row_stride + cols.to(tl.int64) * col_stride,
            mask=cols < n_cols,
            other=-float("inf"),
        ).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    target = tl.load(t_ptr + row)
    picked = tl.load(x_ptr + row * row_stride + target * col_stride).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    row_loss[(rows,)](logits, target, losses, classes, *logits.stride(), BLOCK=1024)
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
