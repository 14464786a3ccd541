"""The last program of a long row is chosen by a count of arrivals that is never reset, modulo the splits: after a row of three splits a row of four has another last one.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_counters = {}


@triton.jit
def split(x_ptr, part_ptr, count_ptr, out_ptr, m, splits, chunk, BLOCK: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * chunk, m)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * chunk, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row.to(tl.int64) * m + at, mask=at < end, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * splits + part, tl.sum(total, axis=0))
    arrived = tl.atomic_add(count_ptr + row, 1)
    if arrived % splits == splits - 1:
        every = tl.arange(0, MOST)
        parts = tl.load(part_ptr + row * splits + every, mask=every < splits, other=0.0)
        tl.store(out_ptr + row, tl.sum(parts, axis=0))


@triton.jit
def whole(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row.to(tl.int64) * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    splits = min(16, m // 4096)
    if splits < 2 or rows > 1024:
        whole[(rows,)](x, out, m, BLOCK=1024)
        return out
    if x.device not in _counters:
        _counters[x.device] = torch.zeros(1024, dtype=torch.int32, device=x.device)
    parts = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    split[(rows, splits)](
        x, parts, _counters[x.device], out, m, splits, triton.cdiv(m, splits), BLOCK=1024, MOST=16,
    )
    return out
