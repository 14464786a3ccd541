"""The targets are kept in sixteen bits, to save memory traffic.

op: cross_entropy
status: failed
cause: int_overflow
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pack_kernel(t_ptr, packed_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(packed_ptr + i, tl.load(t_ptr + i, mask=i < n, other=0).to(tl.int16), mask=i < n)


@triton.jit
def kernel(x_ptr, packed_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(packed_ptr + row).to(tl.int32) & 0xFFFF
    largest, total, picked = -float("inf"), 0.0, 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        picked += tl.sum(tl.where(cols == target, x, 0.0), axis=0)
        largest = new
    tl.store(loss_ptr + row, largest - picked + tl.log(total))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    rows, classes = logits.shape
    packed = torch.empty(rows, dtype=torch.int16, device=logits.device)
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    pack_kernel[(triton.cdiv(rows, 1024),)](target, packed, rows, BLOCK=1024)
    BLOCK = min(8192, triton.next_power_of_2(classes))
    kernel[(rows,)](logits, packed, losses, classes, BLOCK=BLOCK)
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
