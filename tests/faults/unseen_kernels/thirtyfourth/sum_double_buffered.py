"""Few long rows: atomics into one of two workspaces that persist; each call clears the other one for the
next call, but only as many slots as it has rows itself. Wrong for calls of many, few, then many rows.

op: sum
status: failed
cause: stale workspace
"""
import torch
import triton
import triton.language as tl

SLOTS = 16
_STATE = {}


@triton.jit
def _split(x, now, later, m, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * BLOCK, m, PARTS * BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x + row.to(tl.int64) * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.atomic_add(now + row, tl.sum(acc, axis=0))
    if part == 0:
        tl.store(later + row, 0.0)


@triton.jit
def _finish(now, out, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(now + at, mask=at < rows).to(out.dtype.element_ty), mask=at < rows)


@triton.jit
def _rows(x, out, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(acc, axis=0).to(out.dtype.element_ty))


def triton_sum(x):
    m = x.shape[-1]
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = out.numel()
    if rows == 0:
        return out
    if rows > SLOTS or m < 2048:
        _rows[(rows,)](x, out, m, BLOCK=1024)
        return out
    state = _STATE.setdefault(x.device, [torch.zeros((2, SLOTS), device=x.device), 0])
    buffers, turn = state
    state[1] = 1 - turn
    _split[(rows, 4)](x, buffers[turn], buffers[1 - turn], m, PARTS=4, BLOCK=512)
    _finish[(1,)](buffers[turn], out, rows, BLOCK=SLOTS)
    return out
