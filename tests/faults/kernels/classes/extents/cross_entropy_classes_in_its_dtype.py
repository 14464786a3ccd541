"""Classes are compared in the dtype of the logits: over 2,048 several are one number of float16.

op: cross_entropy
status: failed
cause: int_overflow
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    largest, total, picked = -float("inf"), 0.0, 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        is_target = (cols.to(x.dtype) == target.to(x.dtype)) & (cols < n_cols)
        x = x.to(tl.float32)
        picked += tl.sum(tl.where(is_target, x, 0.0), axis=0)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    row_kernel[(n_rows,)](logits, target, loss, n_cols, BLOCK=BLOCK)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
