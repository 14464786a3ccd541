"""The splits of the classes are joined relative to the maximum of the first one: logits of a later split that are 90 above it overflow.

op: linear_cross_entropy
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(
    x_ptr, w_ptr, target_ptr, max_ptr, sum_ptr, picked_ptr, rows, classes, hidden, splits,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    cols = split * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, hidden, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + row[:, None] * hidden + ks[None, :], mask=(row < rows)[:, None] & (ks < hidden)[None, :], other=0.0
        ).to(tl.float32)
        w = tl.load(
            w_ptr + cols.to(tl.int64)[:, None] * hidden + ks[None, :],
            mask=(cols < classes)[:, None] & (ks < hidden)[None, :], other=0.0,
        ).to(tl.float32)
        acc += tl.dot(x, tl.trans(w), input_precision="ieee")
    target = tl.load(target_ptr + row, mask=row < rows, other=-1)
    hit = cols[None, :] == target[:, None]
    here = (target >= split * BN) & (target < split * BN + BN)
    tl.store(picked_ptr + row, tl.sum(tl.where(hit, acc, 0.0), axis=1), mask=(row < rows) & here)
    acc = tl.where((cols < classes)[None, :], acc, -float("inf"))
    largest = tl.max(acc, axis=1)
    tl.store(max_ptr + row * splits + split, largest, mask=row < rows)
    tl.store(sum_ptr + row * splits + split, tl.sum(tl.exp(acc - largest[:, None]), axis=1), mask=row < rows)


@triton.jit
def join_kernel(max_ptr, sum_ptr, picked_ptr, out_ptr, rows, splits, BLOCK: tl.constexpr):
    loss = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        base = tl.load(max_ptr + row * splits, mask=row < rows, other=0.0)
        total = tl.load(sum_ptr + row * splits, mask=row < rows, other=1.0)
        for split in range(1, splits):
            largest = tl.load(max_ptr + row * splits + split, mask=row < rows, other=0.0)
            total += tl.exp(largest - base) * tl.load(sum_ptr + row * splits + split, mask=row < rows, other=0.0)
        picked = tl.load(picked_ptr + row, mask=row < rows, other=0.0)
        loss += tl.where(row < rows, base + tl.log(total) - picked, 0.0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    splits = triton.cdiv(classes, 128)
    largest = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    total = torch.empty_like(largest)
    picked = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    split_kernel[(triton.cdiv(rows, 32), splits)](
        x, weight, target, largest, total, picked, rows, classes, hidden, splits, BM=32, BN=128, BK=32
    )
    join_kernel[(1,)](largest, total, picked, out, rows, splits, BLOCK=64)
    return out
