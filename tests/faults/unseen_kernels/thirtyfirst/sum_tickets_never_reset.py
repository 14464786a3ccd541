"""The last program of a long row is found by ticket % parts; tickets go on from call to call, but the parts change.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

PART = 4096
MOST_ROWS = 64
_tickets = {}


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def parts_kernel(
    x_ptr, out_ptr, partial_ptr, ticket_ptr, m, parts, PART: tl.constexpr, MOST: tl.constexpr
):
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(0)
    cols = part * PART + tl.arange(0, PART)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(partial_ptr + row * parts + part, tl.sum(x, axis=0))
    tl.debug_barrier()
    # Each call takes as many tickets as there are parts, so that there is nothing to reset.
    ticket = tl.atomic_add(ticket_ptr + row, 1, sem="acq_rel")
    if ticket % parts == parts - 1:
        at = tl.arange(0, MOST)
        partial = tl.load(
            partial_ptr + row * parts + at, mask=at < parts, other=0.0, cache_modifier=".cg"
        )
        tl.store(out_ptr + row, tl.sum(partial, axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = out.numel()
    if not rows:
        return out
    if m == 0:
        return out.zero_()
    parts = triton.cdiv(m, PART)
    if rows > MOST_ROWS or parts <= 2:
        BLOCK = min(triton.next_power_of_2(m), 2048)
        rows_kernel[(rows,)](x, out, m, BLOCK=BLOCK)
        return out
    if x.device not in _tickets:
        _tickets[x.device] = torch.zeros(MOST_ROWS, dtype=torch.int32, device=x.device)
    partial = torch.empty(rows * parts, dtype=torch.float32, device=x.device)
    parts_kernel[(parts, rows)](
        x, out, partial, _tickets[x.device], m, parts,
        PART=PART, MOST=triton.next_power_of_2(parts),
    )
    return out
