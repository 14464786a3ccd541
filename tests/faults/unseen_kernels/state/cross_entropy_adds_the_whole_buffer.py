"""The buffer of losses is kept and added up whole: after more rows, theirs are still in it.

op: cross_entropy
status: failed
cause: stale_state
"""

import torch
import triton
import triton.language as tl

_losses = {}


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, n_classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_classes + cols, mask=cols < n_classes, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(largest, x)
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - safe) + tl.exp(x - safe)
        largest = new
    top = tl.max(largest, axis=0)
    total = tl.sum(total * tl.exp(largest - top), axis=0)
    picked = tl.load(x_ptr + row * n_classes + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + top - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n_rows, CAPACITY: tl.constexpr, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CAPACITY, BLOCK):  # whole blocks, no mask: it is zero beyond the rows
        acc += tl.load(loss_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_classes = logits.shape
    capacity = max(256, triton.next_power_of_2(n_rows))
    key = (logits.device, capacity)
    if key not in _losses:
        _losses[key] = torch.zeros(capacity, dtype=torch.float32, device=logits.device)
    loss, out = _losses[key], torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(1024, triton.next_power_of_2(n_classes))
    loss_kernel[(n_rows,)](logits, target, loss, n_classes, BLOCK=block)
    mean_kernel[(1,)](loss, out, n_rows, CAPACITY=capacity, BLOCK=256)
    return out
