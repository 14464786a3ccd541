"""Right: a row is split over programs, and whichever comes last adds the parts up, always in one order.

op: sum
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, parts_ptr, tickets_ptr, m, chunk, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    # The later parts are short or empty; an empty one is a sum of nothing.
    end = tl.minimum(part * chunk + chunk, m)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * chunk, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < end, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * PARTS + part, tl.sum(total, axis=0))
    tl.debug_barrier()
    ticket = tl.atomic_add(tickets_ptr + row, 1, sem="acq_rel")
    if ticket == PARTS - 1:
        tl.debug_barrier()
        parts_of_rows = tl.load(parts_ptr + row * PARTS + tl.arange(0, PARTS), volatile=True)
        tl.store(out_ptr + row, tl.sum(parts_of_rows, axis=0))


def triton_sum(x):
    x = x.contiguous()
    *leading, m = x.shape
    out = torch.empty(leading, dtype=x.dtype, device=x.device)
    n = math.prod(leading)
    if n == 0:
        return out
    parts = 16 if m > 1024 and n < 512 else 2
    parts_of_rows = torch.full((n, parts), float("nan"), dtype=torch.float32, device=x.device)
    tickets = torch.zeros(n, dtype=torch.int32, device=x.device)
    chunk = triton.cdiv(m, parts * 128) * 128
    kernel[(n, parts)](x, out, parts_of_rows, tickets, m, chunk, PARTS=parts, BLOCK=128 if m < 8192 else 512)
    return out
