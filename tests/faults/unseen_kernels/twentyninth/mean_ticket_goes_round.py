"""The last program of a row is found by a ticket that is never reset, modulo the parts: wrong when the parts change.

op: mean
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

PART = 4096  # elements of a row a program
_tickets = {}  # of each device: one counter a row


@triton.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / n_cols)


@triton.jit
def part_kernel(
    x_ptr, sum_ptr, ticket_ptr, out_ptr, n_cols, parts,
    BLOCK_SIZE: tl.constexpr, PART: tl.constexpr, PARTS: tl.constexpr,
):
    """The sum of one part of a row; the row's last program adds the parts, in order."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    total = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for start in range(0, PART, BLOCK_SIZE):
        cols = part.to(tl.int64) * PART + start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        total += x.to(tl.float32)
    tl.store(sum_ptr + row * parts + part, tl.sum(total, axis=0))
    tl.debug_barrier()
    ticket = tl.atomic_add(ticket_ptr + row, 1, sem="acq_rel")
    # Each call takes as many tickets as there are parts: the counter goes round by itself, and no
    # launch is needed to clear it.
    if ticket % parts == parts - 1:
        which = tl.arange(0, PARTS)
        sums = tl.load(
            sum_ptr + row * parts + which, mask=which < parts, other=0.0, cache_modifier=".cg"
        )
        tl.store(out_ptr + row, tl.sum(sums, axis=0) / n_cols)


def tickets_of(device, n_rows):
    tickets = _tickets.get(device)
    if tickets is None or len(tickets) < n_rows:
        tickets = torch.zeros(max(n_rows, 1024), dtype=torch.int32, device=device)
        _tickets[device] = tickets
    return tickets


def triton_mean(x):
    if not x.numel():
        return x.new_full(x.shape[:-1], float("nan"))
    x = x.contiguous()
    out = x.new_empty(x.shape[:-1])
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= PART:
        row_kernel[(n_rows,)](x, out, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))
        return out
    parts = triton.cdiv(n_cols, PART)
    sums = torch.empty((n_rows, parts), dtype=torch.float32, device=x.device)
    part_kernel[(n_rows, parts)](
        x, sums, tickets_of(x.device, n_rows), out, n_cols, parts,
        BLOCK_SIZE=1024, PART=PART, PARTS=triton.next_power_of_2(parts),
    )
    return out
