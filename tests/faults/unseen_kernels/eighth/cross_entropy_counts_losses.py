"""The mean divides by the number of losses that aren't zero; wrong as soon as a row is so sure that its loss is zero.

op: cross_entropy
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def losses(logits_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    label = tl.load(target_ptr + row)
    loss = 0.0
    if (label >= 0) & (label < n_cols):
        loss = largest - tl.load(logits_ptr + row * n_cols + label).to(tl.float32) + tl.log(total)
    tl.store(loss_ptr + row, loss)


@triton.jit
def average(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        loss = tl.load(loss_ptr + offsets, mask=offsets < n, other=0.0)
        total += loss
        count += (loss != 0.0).to(tl.int32)
    tl.store(out_ptr, tl.sum(total, axis=0) / tl.maximum(tl.sum(count, axis=0), 1))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(triton.next_power_of_2(n_cols), 2048)
    losses[(n_rows,)](logits, target, loss, n_cols, BLOCK=block)
    average[(1,)](loss, out, n_rows, BLOCK=256)
    return out
