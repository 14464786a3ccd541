"""Pieces of a row are joined by the program that draws the last ticket; tickets and partial sums are new in each call.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, part_ptr, ticket_ptr, out_ptr, m, splits, PIECE: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    at = split * PIECE + tl.arange(0, PIECE)
    x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * splits + split, tl.sum(x, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(ticket_ptr + row, 1, sem="acq_rel") == splits - 1:
        acc = tl.zeros((WIDE,), dtype=tl.float32)
        for start in range(0, splits, WIDE):
            i = start + tl.arange(0, WIDE)
            acc += tl.load(part_ptr + row * splits + i, mask=i < splits, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    m = x.shape[-1]
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    x = x.contiguous()
    rows, splits = out.numel(), triton.cdiv(m, 512)
    part = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    tickets = torch.zeros(rows, dtype=torch.int32, device=x.device)
    kernel[(rows, splits)](x, part, tickets, out, m, splits, PIECE=512, WIDE=32)
    return out
