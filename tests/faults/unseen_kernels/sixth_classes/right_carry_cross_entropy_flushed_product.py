"""Looks as if the product of twelve rows' sums could overflow: its logarithm is taken as soon as it is above 1e20.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    logits_ptr, target_ptr, part_ptr, n_rows, n_cols, lr, lc, ts, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    product = 1.0
    logarithms = 0.0
    rest = 0.0
    for i in range(ROWS):
        row = first + i
        if row < n_rows:
            at = logits_ptr + row * lr
            largest = -float("inf")
            total = 0.0
            for start in range(0, n_cols, BLOCK):
                cols = start + tl.arange(0, BLOCK)
                x = tl.load(at + cols.to(tl.int64) * lc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
                new = tl.maximum(largest, tl.max(x, axis=0))
                # a block of -inf alone adds nothing
                level = tl.where(new == -float("inf"), 0.0, new)
                total = total * tl.exp(largest - level) + tl.sum(tl.exp(x - level), axis=0)
                largest = new
            picked = tl.load(at + tl.load(target_ptr + row * ts) * lc).to(tl.float32)
            product *= total  # from 1 to the number of classes
            rest += (largest - picked) / n_rows
            if product > 1e20:
                logarithms += tl.log(product)
                product = 1.0
    tl.store(part_ptr + tl.program_id(0), rest + (logarithms + tl.log(product)) / n_rows)


@triton.jit
def sum_kernel(part_ptr, out_ptr, n_parts, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_parts, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(part_ptr + offsets, mask=offsets < n_parts, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0))


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    n_parts = triton.cdiv(n_rows, 12)
    parts = torch.empty(n_parts, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(n_parts,)](
        logits, target, parts, n_rows, n_cols, logits.stride(0), logits.stride(1), target.stride(0),
        ROWS=12, BLOCK=min(4096, triton.next_power_of_2(n_cols)),
    )
    sum_kernel[(1,)](parts, out, n_parts, BLOCK=256)
    return out
