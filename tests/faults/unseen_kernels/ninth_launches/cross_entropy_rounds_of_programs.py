"""Long rows go in rounds over a fixed number of programs; a round that isn't full adds the last row again.

op: cross_entropy
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 96


@triton.jit
def loss_kernel(logits_ptr, target_ptr, part_ptr, n_rows, n_cols, lr, lc, ts, BLOCK: tl.constexpr):
    programs = tl.num_programs(0)
    acc = 0.0
    for turn in range(tl.cdiv(n_rows, programs)):
        row = tl.minimum(turn * programs + tl.program_id(0), n_rows - 1)
        largest = -float("inf")
        total = 0.0
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(logits_ptr + row * lr + cols * lc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
            new = tl.maximum(largest, tl.max(x, axis=0))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
            largest = new
        picked = tl.load(logits_ptr + row * lr + tl.load(target_ptr + row * ts) * lc).to(tl.float32)
        acc += tl.log(total) + largest - picked
    tl.store(part_ptr + tl.program_id(0), acc)


@triton.jit
def mean_kernel(part_ptr, out_ptr, n_parts, n_rows, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_parts, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(part_ptr + offsets, mask=offsets < n_parts, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    BLOCK = min(2048, triton.next_power_of_2(n_cols))
    programs = min(n_rows, PROGRAMS) if n_cols > BLOCK else n_rows
    parts = torch.empty(programs, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(programs,)](
        logits, target, parts, n_rows, n_cols, logits.stride(0), logits.stride(1), target.stride(0),
        BLOCK=BLOCK,
    )
    mean_kernel[(1,)](parts, out, programs, n_rows, BLOCK=256)
    return out
