"""Losses live in a ring of 32 numbers and float32 ones are returned in place: the 33rd call overwrites the first.

op: cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

SLOTS = 32
_rings = {}


@triton.jit
def kernel(logits_ptr, target_ptr, loss_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = logits_ptr + row * n_cols
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(base + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, x)
    top = tl.max(largest, axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(base + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - top)
    picked = tl.load(base + tl.load(target_ptr + row)).to(tl.float32)
    tl.atomic_add(loss_ptr, (tl.log(tl.sum(total, axis=0)) + top - picked) / n_rows)


def next_slot(device):
    ring, used = _rings.get(device, (None, 0))
    if ring is None:
        ring = torch.zeros(SLOTS, dtype=torch.float32, device=device)
    _rings[device] = ring, used + 1
    return ring[used % SLOTS].zero_()


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    loss = next_slot(logits.device)
    BLOCK = min(4096, triton.next_power_of_2(n_cols))
    kernel[(n_rows,)](logits, target, loss, n_rows, n_cols, BLOCK=BLOCK)
    return loss.to(logits.dtype)
