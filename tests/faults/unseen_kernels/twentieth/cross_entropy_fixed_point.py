"""The losses are added as int64 in units of 2^-24, for the same result in any order: an infinite or NaN loss becomes a finite number.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, target_ptr, total_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * m
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
        largest = new
    logit = tl.load(x_ptr + base + tl.load(target_ptr + row)).to(tl.float32)
    loss = (largest - logit) + tl.log(total)
    # Integers add exactly: atomics in any order give the same bits.
    tl.atomic_add(total_ptr, (loss * 16777216.0).to(tl.int64))


@triton.jit
def finish(total_ptr, out_ptr, n):
    tl.store(out_ptr, (tl.load(total_ptr).to(tl.float64) / 16777216.0 / n).to(tl.float32))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, m = logits.shape
    total = torch.zeros((), dtype=torch.int64, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    kernel[(n,)](logits, target, total, m, BLOCK=min(2048, triton.next_power_of_2(m)))
    finish[(1,)](total, out, n)
    return out
