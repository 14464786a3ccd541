"""Adds the parts of this call from a workspace that calls share.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


WORKSPACES = {}


@triton.jit
def partial_kernel(x_ptr, work_ptr, n_cols, width, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(work_ptr + row * width + part, tl.sum(x, axis=0))


@triton.jit
def total_kernel(work_ptr, out_ptr, width, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(work_ptr + row * width + cols, mask=cols < parts, other=0.0), axis=0)
    tl.store(out_ptr + row, total)


def workspace(rows, parts, device):
    work = WORKSPACES.get(device)
    if work is None or work.shape[0] < rows or work.shape[1] < parts:
        work = torch.zeros(max(rows, 64), max(parts, 8), device=device)
        WORKSPACES[device] = work
    return work


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    rows, parts = x.numel() // n_cols, triton.cdiv(n_cols, 512)
    work = workspace(rows, parts, x.device)
    width = work.shape[1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    partial_kernel[(rows, parts)](x, work, n_cols, width, BLOCK=512)
    total_kernel[(rows,)](work, out, width, parts, BLOCK=triton.next_power_of_2(width))
    return out
