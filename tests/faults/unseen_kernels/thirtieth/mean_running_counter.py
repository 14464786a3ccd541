"""The counter of finished parts is never reset, only taken modulo: after calls of few parts, many come too early.

op: mean
status: failed
cause: state
"""

import functools

import torch
import triton
import triton.language as tl

FEW_ROWS = 128
MOST = 16


@triton.jit
def whole(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


@triton.jit
def split(
    x_ptr, out_ptr, part_ptr, count_ptr, m, length,
    PARTS: tl.constexpr, MOST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), tl.float32)
    end = tl.minimum(m, (part + 1) * length)
    for start in range(part * length, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < end, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * MOST + part, tl.sum(total, axis=0))
    tl.debug_barrier()
    # The last program of a row adds the parts. Every call adds PARTS: no reset between calls.
    done = tl.atomic_add(count_ptr + row, 1, sem="acq_rel")
    if done % PARTS == PARTS - 1:
        parts = tl.load(part_ptr + row * MOST + tl.arange(0, PARTS), volatile=True)
        tl.store(out_ptr + row, tl.sum(parts, axis=0) / m)


@functools.cache
def workspace(device):
    parts = torch.zeros((FEW_ROWS, MOST), dtype=torch.float32, device=device)
    return parts, torch.zeros((FEW_ROWS,), dtype=torch.int32, device=device)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if rows > FEW_ROWS or m <= 4096:
        whole[(rows,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
        return out
    parts = min(MOST, triton.next_power_of_2(triton.cdiv(m, 4096)))
    length = triton.cdiv(m, parts)
    split[(rows, parts)](
        x, out, *workspace(x.device), m, length, PARTS=parts, MOST=MOST, BLOCK=1024
    )
    return out
