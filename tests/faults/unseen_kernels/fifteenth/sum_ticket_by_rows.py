"""The tickets that choose the last program of a row are never set back, since a multiple of the splits stays one; they are shared by all row lengths.

op: sum
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


_tickets = {}


@triton.jit
def kernel(x_ptr, part_ptr, ticket_ptr, out_ptr, m, splits, PIECE: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    at = split * PIECE + tl.arange(0, PIECE)
    x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * splits + split, tl.sum(x, axis=0))
    tl.debug_barrier()
    ticket = tl.atomic_add(ticket_ptr + row, 1, sem="acq_rel")
    if ticket % splits == splits - 1:
        acc = tl.zeros((WIDE,), dtype=tl.float32)
        for start in range(0, splits, WIDE):
            i = start + tl.arange(0, WIDE)
            acc += tl.load(part_ptr + row * splits + i, mask=i < splits, other=0.0)
        tl.store(out_ptr + row, tl.sum(acc, axis=0))


@triton.jit
def short_kernel(x_ptr, out_ptr, m, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, PIECE)
    x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    rows, splits = out.numel(), triton.cdiv(m, 1024)
    if splits == 1:
        short_kernel[(rows,)](x, out, m, PIECE=1024)
        return out
    key = (rows, x.device)
    if key not in _tickets:
        _tickets[key] = torch.zeros(rows, dtype=torch.int32, device=x.device)
    part = torch.zeros((rows, splits), dtype=torch.float32, device=x.device)
    kernel[(rows, splits)](x, part, _tickets[key], out, m, splits, PIECE=1024, WIDE=64)
    return out
