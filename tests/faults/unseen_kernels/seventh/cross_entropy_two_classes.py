"""Two classes take a short cut, log(1 + exp(other - target)), that overflows for logits far apart.

op: cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def binary_kernel(logits_ptr, target_ptr, loss_ptr, n_rows, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = rows < n_rows
    target = tl.load(target_ptr + rows, mask=mask, other=0)
    picked = tl.load(logits_ptr + rows * 2 + target, mask=mask, other=0.0).to(tl.float32)
    other = tl.load(logits_ptr + rows * 2 + 1 - target, mask=mask, other=0.0).to(tl.float32)
    tl.store(loss_ptr + rows, tl.log(1.0 + tl.exp(other - picked)), mask=mask)


@triton.jit
def kernel(logits_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    if n_cols == 2:
        binary_kernel[(triton.cdiv(n_rows, 256),)](logits, target, loss, n_rows, BLOCK=256)
    else:
        kernel[(n_rows,)](logits, target, loss, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
