"""The second kernel joins all parts of a row in one block.

op: cross_entropy
status: passed
held_out: yes
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(logits_ptr, top_ptr, total_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    top = tl.max(x, axis=0)
    tl.store(top_ptr + row * n_parts + part, top)
    tl.store(total_ptr + row * n_parts + part, tl.sum(tl.exp(x - top), axis=0))


@triton.jit
def join_kernel(
    logits_ptr, target_ptr, top_ptr, total_ptr, out_ptr, n_rows, n_cols, n_parts, BLOCK: tl.constexpr
):
    parts = tl.arange(0, BLOCK)
    loss = 0.0
    for row in range(0, n_rows):
        places = row * n_parts + parts
        tops = tl.load(top_ptr + places, mask=parts < n_parts, other=-float("inf"))
        totals = tl.load(total_ptr + places, mask=parts < n_parts, other=0.0)
        top = tl.max(tops, axis=0)
        total = tl.sum(totals * tl.exp(tops - top), axis=0)
        picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
        loss += tl.log(total) + top - picked
    tl.store(out_ptr, loss / n_rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    n_parts = triton.cdiv(n_cols, 512)
    tops = torch.empty((n_rows, n_parts), dtype=torch.float32, device=logits.device)
    totals = torch.empty((n_rows, n_parts), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    part_kernel[(n_rows, n_parts)](logits, tops, totals, n_cols, n_parts, BLOCK=512)
    join_kernel[(1,)](
        logits, target, tops, totals, out, n_rows, n_cols, n_parts,
        BLOCK=triton.next_power_of_2(n_parts),
    )
    return out
