"""Right: one kernel for all: programs walk over rows, and the one that takes the last ticket adds the sums of the others.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 256


@triton.jit
def loss_kernel(
    logits_ptr, target_ptr, sums_ptr, tickets_ptr, out_ptr, rows, classes, stride_r, stride_c, stride_t,
    BLOCK: tl.constexpr, PROGRAMS: tl.constexpr,
):
    pid, programs = tl.program_id(0), tl.num_programs(0)
    sum_here = tl.full((), 0.0, tl.float32)
    for row in range(pid, rows, programs):
        base = logits_ptr + tl.cast(row, tl.int64) * stride_r
        largest = tl.full((), -float("inf"), tl.float32)
        total = tl.full((), 0.0, tl.float32)
        for start in range(0, classes, BLOCK):
            cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
            x = tl.load(base + cols * stride_c, mask=cols < classes, other=-float("inf"))
            x = x.to(tl.float32)
            new = tl.maximum(largest, tl.max(x, axis=0))
            safe = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), axis=0)
            largest = new
        target = tl.load(target_ptr + tl.cast(row, tl.int64) * stride_t)
        picked = tl.load(base + target * stride_c).to(tl.float32)
        sum_here += tl.log(total) + (largest - picked)
    tl.store(sums_ptr + pid, sum_here)
    tl.debug_barrier()  # the sum is written before the ticket is taken
    ticket = tl.atomic_add(tickets_ptr, 1, sem="acq_rel", scope="gpu")
    if ticket == programs - 1:
        places = tl.arange(0, PROGRAMS)
        sums = tl.load(sums_ptr + places, mask=places < programs, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(sums, axis=0) / rows)


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    sums = torch.empty(PROGRAMS, dtype=torch.float32, device=logits.device)
    tickets = torch.zeros((), dtype=torch.int32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(max(1, min(rows, PROGRAMS)),)](
        logits, target, sums, tickets, out, rows, classes, *logits.stride(), target.stride(0),
        BLOCK=min(2048, triton.next_power_of_2(classes)), PROGRAMS=PROGRAMS,
    )
    return out
