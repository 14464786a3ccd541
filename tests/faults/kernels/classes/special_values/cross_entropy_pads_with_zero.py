"""Rows of class 0 are taken for padding: they have no loss and are not counted.

op: cross_entropy
status: failed
cause: wrong_formula
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, target_ptr, sums_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    if target != 0:
        largest, total = -float("inf"), 0.0
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
            x = x.to(tl.float32)
            new = tl.maximum(largest, tl.max(x, axis=0))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
            largest = new
        picked = tl.load(x_ptr + row * n_cols + target).to(tl.float32)
        tl.atomic_add(sums_ptr, tl.log(total) + (largest - picked))
        tl.atomic_add(sums_ptr + 1, 1.0)


@triton.jit
def mean_kernel(sums_ptr, out_ptr):
    tl.store(out_ptr, tl.load(sums_ptr) / tl.maximum(tl.load(sums_ptr + 1), 1.0))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    sums = torch.zeros(2, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    row_kernel[(n_rows,)](logits, target, sums, n_cols, BLOCK=BLOCK)
    mean_kernel[(1,)](sums, out)
    return out
