"""The kept workspace is cleared by taking the sum back off it: after a sum of Inf or NaN it stays NaN, and so do later calls.

op: sum
status: failed
cause: stale-workspace
"""

import torch
import triton
import triton.language as tl

_workspaces = {}


@triton.jit
def sum_split(x_ptr, total_ptr, count_ptr, out_ptr, m, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    row, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    base = x_ptr + row.to(tl.int64) * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK):
        cols = part * CHUNK + start + tl.arange(0, BLOCK)
        total += tl.load(base + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr + row, tl.sum(total, axis=0), sem="acq_rel")
    tl.debug_barrier()
    ticket = tl.atomic_add(count_ptr + row, 1, sem="acq_rel")
    if ticket == parts - 1:  # all parts have arrived
        whole = tl.atomic_add(total_ptr + row, 0.0, sem="acq_rel")
        tl.store(out_ptr + row, whole)
        # Leave both as they were found, so that the next call needs no launch to fill zeros.
        tl.atomic_add(total_ptr + row, -whole)
        tl.atomic_add(count_ptr + row, -parts)


@triton.jit
def sum_row(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def _workspace(rows, device):
    """Zeros, kept from call to call; the kernel leaves them zero."""
    key = (device, torch.cuda.current_stream(device) if device.type == "cuda" else None)
    if key not in _workspaces or _workspaces[key][0].numel() < rows:
        size = max(1024, triton.next_power_of_2(rows))
        _workspaces[key] = (
            torch.zeros(size, dtype=torch.float32, device=device),
            torch.zeros(size, dtype=torch.int32, device=device),
        )
    return _workspaces[key]


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // max(m, 1)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if m <= 2048 or rows >= 1024:
        if m <= 2048:
            sum_row[(rows,)](x, out, m, BLOCK=triton.next_power_of_2(max(m, 1)))
            return out
        parts = 1
    else:
        parts = min(triton.cdiv(m, 2048), 64)
    chunk = triton.cdiv(triton.cdiv(m, parts), 1024) * 1024
    parts = triton.cdiv(m, chunk)
    total, count = _workspace(rows, x.device)
    sum_split[(rows, parts)](x, total, count, out, m, CHUNK=chunk, BLOCK=1024)
    return out
