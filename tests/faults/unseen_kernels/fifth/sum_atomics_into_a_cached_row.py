"""Nothing wrong: parts are added by atomics into a float32 workspace that is cached, and cleared by the kernel that reads it.

op: sum
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
_WORK = {}


@triton.jit
def add_kernel(x_ptr, work_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0)
    tl.atomic_add(work_ptr + rows, tl.sum(x.to(tl.float32), axis=1), mask=rows < n_rows)


@triton.jit
def take_kernel(work_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = rows < n_rows
    tl.store(out_ptr + rows, tl.load(work_ptr + rows, mask=inside), mask=inside)
    tl.store(work_ptr + rows, tl.zeros((BLOCK,), dtype=tl.float32), mask=inside)


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    work = _WORK.get(x.device)
    if work is None or len(work) < n_rows:
        work = _WORK[x.device] = torch.zeros(max(n_rows, 1024), dtype=torch.float32, device=x.device)
    cols = min(1024, triton.next_power_of_2(n_cols))
    rows = max(1, 1024 // cols)
    grid = (triton.cdiv(n_rows, rows), triton.cdiv(n_cols, cols))
    add_kernel[grid](x, work, n_rows, n_cols, ROWS=rows, COLS=cols)
    take_kernel[(triton.cdiv(n_rows, 256),)](work, out, n_rows, BLOCK=256)
    return out
