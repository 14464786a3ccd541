"""The counter of finished programs is never reset but taken modulo their number: after a call of another size the program that adds all parts is not the last one.

op: cross_entropy
status: failed
cause: counter
"""

import torch
import triton
import triton.language as tl

ROWS = 4  # a program
_counters = {}


@triton.jit
def kernel(x_ptr, target_ptr, parts_ptr, counter_ptr, out_ptr, n, classes, sn, sc, st, N_PARTS, ROWS: tl.constexpr,
           BLOCK: tl.constexpr, BLOCK_PARTS: tl.constexpr):
    pid = tl.program_id(0)
    loss = 0.0
    for i in range(ROWS):
        row = pid.to(tl.int64) * ROWS + i
        if row < n:
            top = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
            total = tl.zeros((BLOCK,), dtype=tl.float32)
            for start in range(0, classes, BLOCK):
                cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
                x = tl.load(x_ptr + row * sn + cols * sc, mask=cols < classes, other=-float("inf")).to(tl.float32)
                new = tl.where((x > top) | (x != x), x, top)
                safe = tl.where(new == -float("inf"), 0.0, new)
                total = total * tl.exp(top - safe) + tl.exp(x - safe)
                top = new
            # The maximum of all lanes; a NaN stays in the sum.
            best = tl.max(tl.where(top == top, top, -float("inf")), axis=0)
            safe = tl.where(best == -float("inf"), 0.0, best)
            lse = safe + tl.log(tl.sum(total * tl.exp(top - safe), axis=0))
            target = tl.load(target_ptr + row * st)
            loss += lse - tl.load(x_ptr + row * sn + target * sc).to(tl.float32)
    tl.store(parts_ptr + pid, loss)
    tl.debug_barrier()
    ticket = tl.atomic_add(counter_ptr, 1, sem="acq_rel")
    if ticket % N_PARTS == N_PARTS - 1:
        # All others are done. The next call begins at a multiple of N_PARTS: no reset.
        sums = tl.zeros((BLOCK_PARTS,), dtype=tl.float32)
        for start in range(0, N_PARTS, BLOCK_PARTS):
            at = start + tl.arange(0, BLOCK_PARTS)
            sums += tl.load(parts_ptr + at, mask=at < N_PARTS, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(sums, axis=0) / n)


def triton_cross_entropy(logits, target):
    n, classes = logits.shape
    device = logits.device
    if device not in _counters:
        _counters[device] = torch.zeros(1, dtype=torch.int32, device=device)
    n_parts = triton.cdiv(n, ROWS)
    parts = torch.zeros(n_parts, dtype=torch.float32, device=device)
    out = torch.empty((), dtype=logits.dtype, device=device)
    kernel[(n_parts,)](
        logits, target, parts, _counters[device], out, n, classes, logits.stride(0), logits.stride(1),
        target.stride(0), n_parts, ROWS=ROWS, BLOCK=min(1024, triton.next_power_of_2(classes)), BLOCK_PARTS=256,
    )
    return out
