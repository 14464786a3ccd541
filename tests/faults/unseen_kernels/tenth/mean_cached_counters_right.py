"""Counters of finished parts are saved; the last part of a row resets its counter.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl

_counters = {}


@triton.jit
def kernel(
    x_ptr, parts_ptr, counter_ptr, out_ptr, n_cols, LENGTH: tl.constexpr, PARTS: tl.constexpr,
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * LENGTH + tl.arange(0, LENGTH)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * PARTS + part, tl.sum(x, axis=0))
    tl.debug_barrier()
    arrived = tl.atomic_add(counter_ptr + row, 1)
    if arrived == PARTS - 1:
        total = tl.load(parts_ptr + row * PARTS + tl.arange(0, PARTS))
        tl.store(out_ptr + row, tl.sum(total, axis=0) / n_cols)
        tl.store(counter_ptr + row, 0)


def counters(n_rows, device):
    saved = _counters.get(device)
    if saved is None or saved.numel() < n_rows:
        saved = torch.zeros(max(n_rows, 4096), dtype=torch.int32, device=device)
        _counters[device] = saved
    return saved


def triton_mean(x):
    n_cols = x.shape[-1]
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_parts = out.numel(), triton.next_power_of_2(triton.cdiv(n_cols, 1024))
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    kernel[(n_rows, n_parts)](
        x, parts, counters(n_rows, x.device), out, n_cols, LENGTH=1024, PARTS=n_parts
    )
    return out
