"""Arrival counters are cached between calls and never cleared, since the number of parts is a power of two: a call with more parts
than the ones before may start in the middle of a round, and then a program adds the parts before all of them are there.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

counters = {}  # for each device and stream: a counter a row


def arrivals(x, rows):
    key = x.device, torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
    if key not in counters or len(counters[key]) < rows:
        size = max(256, triton.next_power_of_2(rows))
        counters[key] = torch.zeros(size, dtype=torch.int32, device=x.device)
    return counters[key]


@triton.jit
def kernel(x_ptr, sums_ptr, arrived_ptr, out_ptr, m, length, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) // PARTS
    part = tl.program_id(0) % PARTS
    last = tl.minimum(part * length + length, m)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * length, last, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < last, other=0.0).to(tl.float32)
    own = tl.sum(total, axis=0)
    if PARTS == 1:
        tl.store(out_ptr + row, own)
    else:
        tl.store(sums_ptr + row * PARTS + part, own)
        tl.debug_barrier()
        ticket = tl.atomic_add(arrived_ptr + row, 1, sem="acq_rel")
        # A call adds PARTS, so that the low bits are zero again at its end: no clearing.
        if (ticket & (PARTS - 1)) == PARTS - 1:
            which = tl.arange(0, PARTS)
            sums = tl.load(sums_ptr + row * PARTS + which, cache_modifier=".cg")
            tl.store(out_ptr + row, tl.sum(sums, axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = out.numel()
    if rows and m:
        parts = 1 if rows >= 512 else min(16, triton.next_power_of_2(triton.cdiv(m, 2048)))
        length = triton.cdiv(m, parts)
        sums = torch.empty((rows, parts), dtype=torch.float32, device=x.device)
        kernel[(rows * parts,)](
            x, sums, arrivals(x, rows), out, m, length, PARTS=parts, BLOCK=min(1024, triton.next_power_of_2(length)),
        )
    return out
