"""The last program of a row is found by a ticket modulo the parts; tickets go on when the parts change.

op: sum
status: failed
cause: stale_state
round: fourth
"""

import torch
import triton
import triton.language as tl


TICKETS = {}


@triton.jit
def kernel(x_ptr, part_ptr, ticket_ptr, out_ptr, n_cols, n_parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(x, axis=0))
    tl.debug_barrier()
    ticket = tl.atomic_add(ticket_ptr + row, 1)
    if ticket % n_parts == n_parts - 1:
        parts = tl.arange(0, PARTS)
        sums = tl.load(part_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
        tl.store(out_ptr + row, tl.sum(sums, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_parts = triton.cdiv(n_cols, 1024)
    tickets = TICKETS.get(x.device)
    if tickets is None or len(tickets) < n_rows:
        tickets = TICKETS[x.device] = torch.zeros(n_rows, dtype=torch.int32, device=x.device)
    parts = torch.empty(n_rows * n_parts, dtype=torch.float32, device=x.device)
    kernel[(n_rows, n_parts)](
        rows, parts, tickets, out, n_cols, n_parts,
        PARTS=triton.next_power_of_2(n_parts), BLOCK=1024,
    )
    return out
