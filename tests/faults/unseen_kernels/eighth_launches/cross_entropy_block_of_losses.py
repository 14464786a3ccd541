"""The block of losses is the next power of 2 of rows // programs; where that is a power of 2 itself with a remainder, a program's last row is left out.

op: cross_entropy
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, target_ptr, part_ptr, n_rows, n_cols, per_program, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    lanes = tl.arange(0, ROWS)
    rows = tl.program_id(0) * per_program + lanes
    valid = (lanes < per_program) & (rows < n_rows)
    places = rows.to(tl.int64) * n_cols
    largest = tl.full((ROWS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        x = tl.load(x_ptr + places[:, None] + cols[None, :], mask=valid[:, None] & inside[None, :], other=0.0)
        x = tl.where(inside[None, :], x.to(tl.float32), -float("inf"))
        new = tl.maximum(largest, tl.max(x, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new[:, None]), axis=1)
        largest = new
    target = tl.load(target_ptr + rows, mask=valid, other=0)
    picked = tl.load(x_ptr + places + target, mask=valid, other=0.0).to(tl.float32)
    losses = tl.where(valid, largest + tl.log(total) - picked, 0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(losses, axis=0))


@triton.jit
def mean_kernel(part_ptr, out_ptr, n_parts, n_rows, BLOCK: tl.constexpr):
    parts = tl.arange(0, BLOCK)
    losses = tl.load(part_ptr + parts, mask=parts < n_parts, other=0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / n_rows)


PROGRAMS = 320


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    if n_rows < 2 * PROGRAMS:
        programs, per_program, ROWS = n_rows, 1, 1
    else:
        programs, per_program = PROGRAMS, triton.cdiv(n_rows, PROGRAMS)
        ROWS = triton.next_power_of_2(n_rows // PROGRAMS)
    parts = torch.empty(programs, dtype=torch.float32, device=logits.device)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(programs,)](logits, target, parts, n_rows, n_cols, per_program, ROWS=ROWS, BLOCK=BLOCK)
    mean_kernel[(1,)](parts, out, programs, n_rows, BLOCK=triton.next_power_of_2(programs))
    return out
