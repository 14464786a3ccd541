"""Accumulators are cleared by subtracting what they hold: wrong after a row with an infinity or NaN.

op: mean
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


ACCUMULATORS = {}


@triton.jit
def add_kernel(x_ptr, acc_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.atomic_add(acc_ptr + row, tl.sum(x, axis=0))


@triton.jit
def take_kernel(acc_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n_rows
    total = tl.load(acc_ptr + rows, mask=mask)
    tl.store(out_ptr + rows, total / n_cols, mask=mask)
    tl.atomic_add(acc_ptr + rows, -total, mask=mask)


def accumulators(n_rows, device):
    acc = ACCUMULATORS.get(device)
    if acc is None or len(acc) < n_rows:
        acc = ACCUMULATORS[device] = torch.zeros(triton.next_power_of_2(n_rows), device=device)
    return acc


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    acc = accumulators(n_rows, x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    add_kernel[(n_rows, triton.cdiv(n_cols, 1024))](x, acc, n_cols, BLOCK=1024)
    take_kernel[(triton.cdiv(n_rows, 256),)](acc, out, n_rows, n_cols, BLOCK=256)
    return out
