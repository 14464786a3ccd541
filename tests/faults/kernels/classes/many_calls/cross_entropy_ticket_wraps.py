"""The last program is found by a ticket that the host counts in seven bits.

op: cross_entropy
status: failed
cause: call_count
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr,
    t_ptr,
    loss_ptr,
    ticket_ptr,
    out_ptr,
    rows,
    n_cols,
    last_ticket,
    ROWS_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    top = tl.max(x, axis=0)
    lse = tl.log(tl.sum(tl.exp(x - top), axis=0))
    picked = tl.load(x_ptr + row * n_cols + tl.load(t_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, lse + (top - picked))
    ticket = tl.atomic_add(ticket_ptr, 1)
    if ticket == last_ticket:
        acc = tl.zeros((ROWS_BLOCK,), tl.float32)
        for start in range(0, rows, ROWS_BLOCK):
            i = start + tl.arange(0, ROWS_BLOCK)
            acc += tl.load(loss_ptr + i, mask=i < rows, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(acc, axis=0) / rows)


class Tickets:
    def __init__(self, device):
        self.counter = torch.zeros(1, dtype=torch.int32, device=device)
        self.calls = 0

    def next_last(self, rows):
        last = (self.calls % 128 + 1) * rows - 1
        self.calls += 1
        return last


TICKETS = {}


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    tickets = TICKETS.setdefault((rows, logits.device), Tickets(logits.device))
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(rows,)](
        logits,
        target,
        losses,
        tickets.counter,
        out,
        rows,
        classes,
        tickets.next_last(rows),
        ROWS_BLOCK=1024,
        BLOCK=triton.next_power_of_2(classes),
    )
    return out
