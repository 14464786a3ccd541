"""A split without classes leaves its part of the workspace as it was: after a call with more classes it holds that call.

op: linear_cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


SPLITS = 4
_workspaces = {}


@triton.jit
def partial(
    x_ptr, weight_ptr, target_ptr, largest_ptr, total_ptr, picked_ptr, rows, classes, hidden, chunk,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    first = split * chunk
    target = tl.load(target_ptr + row, mask=row < rows, other=-1)
    if first < classes:
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        for start in range(first, tl.minimum(first + chunk, classes), BN):
            col = start + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, hidden, BK):
                ks = k + tl.arange(0, BK)
                x = tl.load(
                    x_ptr + row[:, None] * hidden + ks[None, :],
                    mask=(row < rows)[:, None] & (ks < hidden)[None, :], other=0.0,
                ).to(tl.float32)
                w = tl.load(
                    weight_ptr + col[:, None] * hidden + ks[None, :],
                    mask=(col < classes)[:, None] & (ks < hidden)[None, :], other=0.0,
                ).to(tl.float32)
                acc += tl.dot(x, tl.trans(w), input_precision="ieee")
            hit = col[None, :] == target[:, None]
            picked = tl.sum(tl.where(hit, acc, 0.0), axis=1)
            here = (target >= start) & (target < start + BN)
            tl.store(picked_ptr + row, picked, mask=(row < rows) & here)
            acc = tl.where((col < classes)[None, :], acc, -float("inf"))
            new = tl.maximum(largest, tl.max(acc, axis=1))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
            largest = new
        tl.store(largest_ptr + split * rows + row, largest, mask=row < rows)
        tl.store(total_ptr + split * rows + row, total, mask=row < rows)


@triton.jit
def combine(largest_ptr, total_ptr, picked_ptr, out_ptr, rows, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    loss = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
        for split in tl.static_range(SPLITS):
            part = tl.load(largest_ptr + split * rows + row, mask=row < rows, other=0.0)
            largest = tl.maximum(largest, part)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for split in tl.static_range(SPLITS):
            part = tl.load(largest_ptr + split * rows + row, mask=row < rows, other=0.0)
            weight = tl.load(total_ptr + split * rows + row, mask=row < rows, other=1.0)
            total += weight * tl.exp(part - largest)
        picked = tl.load(picked_ptr + row, mask=row < rows, other=0.0)
        loss += tl.where(row < rows, largest + tl.log(total) - picked, 0.0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / rows)


def workspace(rows, device):
    """Maxima and sums for each split, the target's logits; made once: splits without classes stay neutral."""
    if (rows, device) not in _workspaces:
        largest = torch.full((SPLITS, rows), -float("inf"), dtype=torch.float32, device=device)
        total = torch.zeros(SPLITS, rows, dtype=torch.float32, device=device)
        picked = torch.empty(rows, dtype=torch.float32, device=device)
        _workspaces[rows, device] = largest, total, picked
    return _workspaces[rows, device]


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    largest, total, picked = workspace(rows, x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    chunk = triton.cdiv(triton.cdiv(classes, SPLITS), 32) * 32
    partial[(triton.cdiv(rows, 16), SPLITS)](
        x, weight, target, largest, total, picked, rows, classes, hidden, chunk, BM=16, BN=32, BK=32
    )
    combine[(1,)](largest, total, picked, out, rows, SPLITS=SPLITS, BLOCK=128)
    return out
