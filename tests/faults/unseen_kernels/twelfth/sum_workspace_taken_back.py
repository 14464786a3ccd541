"""The workspace is cleared by subtracting what was read: after a sum that is infinite or NaN it stays NaN for later calls.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_workspaces = {}


@triton.jit
def add_parts(x_ptr, work_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.atomic_add(work_ptr + row, tl.sum(x, axis=0))


@triton.jit
def finish(work_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n_rows
    total = tl.load(work_ptr + rows, mask=mask, other=0.0)
    tl.store(out_ptr + rows, total, mask=mask)
    tl.atomic_add(work_ptr + rows, -total, mask=mask)


def workspace(n_rows, device):
    work = _workspaces.get(device)
    if work is None or work.numel() < n_rows:
        work = _workspaces[device] = torch.zeros(n_rows, dtype=torch.float32, device=device)
    return work


def triton_sum(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = out.numel(), x.shape[-1]
    work = workspace(n_rows, x.device)
    add_parts[(n_rows, triton.cdiv(n_cols, 512))](x, work, n_cols, BLOCK=512)
    finish[(triton.cdiv(n_rows, 128),)](work, out, n_rows, BLOCK=128)
    return out
