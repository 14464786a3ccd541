"""The loss is the logarithm of the target's probability, which is kept from zero by a floor of 1e-37: no row may lose more than 85.

op: cross_entropy
status: failed
cause: clamp
"""

import torch
import triton
import triton.language as tl

@triton.jit
def rows_kernel(x_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    most = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(most, tl.max(x, axis=0))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(x - new), axis=0)
        most = new
    target = tl.load(target_ptr + row)
    picked = tl.load(x_ptr + row * n_cols + target).to(tl.float32)
    probability = tl.exp(picked - most) / total
    tl.store(loss_ptr + row, -tl.log(tl.maximum(probability, 1e-37)))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    rows_kernel[(n_rows,)](logits, target, loss, n_cols, BLOCK=min(1024, triton.next_power_of_2(n_cols)))
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
