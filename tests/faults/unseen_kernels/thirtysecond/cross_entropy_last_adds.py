"""Right: one launch; rows go to few programs in turn, columns from the end, and the program that ends last adds up the parts.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def losses(
    x_ptr, t_ptr, part_ptr, count_ptr, out_ptr, n, classes, xn, xc, ts,
    PROGRAMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    loss = tl.zeros((), dtype=tl.float32)
    for row in range(pid, n, PROGRAMS):
        base = x_ptr + tl.cast(row, tl.int64) * xn
        target = tl.load(t_ptr + tl.cast(row, tl.int64) * ts)
        own = tl.load(base + target * xc).to(tl.float32)
        top = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        # Each place of the block has its own maximum; from the last columns to the first.
        for step in range(tl.cdiv(classes, BLOCK)):
            cols = (classes - 1 - step * BLOCK - tl.arange(0, BLOCK)).to(tl.int64)
            x = tl.load(base + cols * xc, mask=cols >= 0, other=-float("inf")).to(tl.float32)
            new = tl.where((x > top) | (x != x), x, top)
            safe = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(top - safe) + tl.exp(x - safe)
            top = new
        peak = tl.max(top, axis=0)
        whole = tl.sum(total * tl.exp(top - tl.where(peak == -float("inf"), 0.0, peak)), axis=0)
        loss += (peak - own) + tl.log(whole)
    tl.store(part_ptr + pid, loss)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem="acq_rel") == PROGRAMS - 1:
        places = tl.arange(0, PROGRAMS)
        parts = tl.load(part_ptr + places, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(parts, axis=0) / n)


def triton_cross_entropy(logits, target):
    n, classes = logits.shape
    programs = min(64, triton.next_power_of_2(n))  # some may have no row: their part is 0
    parts = torch.empty(programs, dtype=torch.float32, device=logits.device)  # each is written
    count = torch.zeros(1, dtype=torch.int32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    losses[(programs,)](
        logits, target, parts, count, out, n, classes, *logits.stride(), *target.stride(),
        PROGRAMS=programs, BLOCK=min(1024, triton.next_power_of_2(classes)),
    )  # fmt: skip
    return out
