"""Exp and log are done in base two, but the logarithm of the sum is not multiplied by ln 2 to come back to base e (the maximum is).

It shows at logits = randn(7, 13), float32: every input of more than one class.

op: cross_entropy
status: failed
cause: logarithm
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_cols, lr, lc, ts, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * lr + cols * lc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        x = x * 1.4426950408889634
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp2(largest - new) + tl.sum(tl.exp2(x - new), axis=0)
        largest = new
    picked = tl.load(logits_ptr + row * lr + tl.load(target_ptr + row * ts) * lc).to(tl.float32)
    tl.store(loss_ptr + row, tl.log2(total) + largest * 0.6931471805599453 - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(n_rows,)](
        logits, target, loss, n_cols, logits.stride(0), logits.stride(1), target.stride(0), BLOCK=512
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
