"""The last program is parts_of_rows by a ticket modulo the rows; a workspace serves all numbers of rows up to a power of two,
so that after a call with another number of rows the wrong program adds up.

op: cross_entropy
status: failed
cause: ticket
"""

import torch
import triton
import triton.language as tl

_workspaces = {}


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, partial_ptr, ticket_ptr, out_ptr, rows, classes, stride,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    start_ptr = logits_ptr + row.to(tl.int64) * stride
    lanes = tl.arange(0, BLOCK)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        inside = start + lanes < classes
        x = tl.load(start_ptr + start + lanes, mask=inside, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0), propagate_nan=tl.PropagateNan.ALL)
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), axis=0)
        largest = new
    picked = tl.load(start_ptr + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(partial_ptr + row, tl.log(total) + (largest - picked))
    tl.debug_barrier()
    # Every call draws as many tickets as it has rows, so the counter need not be reset.
    ticket = tl.atomic_add(ticket_ptr, 1, sem="acq_rel")
    if ticket % rows == rows - 1:
        acc = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, rows, BLOCK):
            inside = start + lanes < rows
            acc += tl.load(partial_ptr + start + lanes, mask=inside, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(acc, axis=0) / rows)


def workspace(rows, device):
    """Losses and a counter, one for each device, stream and power of two: few for any batches."""
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    size = triton.next_power_of_2(rows)
    key = (device, stream, size)
    if key not in _workspaces:
        partial = torch.zeros(size, dtype=torch.float32, device=device)
        _workspaces[key] = partial, torch.zeros(1, dtype=torch.int64, device=device)
    return _workspaces[key]


def triton_cross_entropy(logits, target):
    if logits.stride(-1) != 1:
        logits = logits.contiguous()
    target = target.contiguous()
    rows, classes = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    partial, ticket = workspace(rows, logits.device)
    cross_entropy_kernel[(rows,)](
        logits, target, partial, ticket, out, rows, classes, logits.stride(0),
        BLOCK=min(1024, max(16, triton.next_power_of_2(classes))),
    )
    return out
