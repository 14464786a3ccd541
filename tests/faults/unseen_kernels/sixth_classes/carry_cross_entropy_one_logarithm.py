"""Twelve rows multiply their sums and one logarithm is taken: with many classes of equal logits the product is infinite.

op: cross_entropy
status: failed
cause: carry
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, part_ptr, n_rows, n_cols, lr, lc, ts, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    last = min(first + ROWS, n_rows)
    cols = tl.arange(0, BLOCK)
    product = 1.0
    rest = 0.0
    for row in range(first, last):
        at = logits_ptr + row * lr
        x = tl.load(at + cols * lc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        largest = tl.max(x, axis=0)
        product *= tl.sum(tl.exp(x - largest), axis=0)
        rest += largest - tl.load(at + tl.load(target_ptr + row * ts) * lc).to(tl.float32)
    tl.store(part_ptr + tl.program_id(0), rest + tl.log(product))


@triton.jit
def mean_kernel(part_ptr, out_ptr, n_parts, n_rows, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_parts, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(part_ptr + offsets, mask=offsets < n_parts, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    n_parts = triton.cdiv(n_rows, 12)
    parts = torch.empty(n_parts, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(n_parts,)](
        logits, target, parts, n_rows, n_cols, logits.stride(0), logits.stride(1), target.stride(0),
        ROWS=12, BLOCK=triton.next_power_of_2(n_cols),
    )
    mean_kernel[(1,)](parts, out, n_parts, n_rows, BLOCK=256)
    return out
