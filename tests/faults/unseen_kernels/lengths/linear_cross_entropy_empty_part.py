"""From 2,048 classes on they go to eight programs by whole tiles; one without classes makes NaN.

op: linear_cross_entropy
status: failed
cause: length
"""

import torch
import triton
import triton.language as tl


@triton.jit
def logits_of(
    x_ptr, w_ptr, rows, cols, n_rows, end, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    logits = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, hidden, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :],
                    mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None],
                    mask=(cols < end)[None, :] & (ks < hidden)[:, None], other=0.0)
        logits += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    return logits


@triton.jit
def part_kernel(
    x_ptr, w_ptr, target_ptr, max_ptr, sum_ptr, picked_ptr, n_rows, n_classes, hidden, per_part,
    PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    part = tl.program_id(1)
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1)
    begin = part * per_part
    end = tl.minimum(begin + per_part, n_classes)
    # the first tile starts the running values; the loop has the others
    cols = begin + tl.arange(0, BN).to(tl.int64)
    logits = logits_of(x_ptr, w_ptr, rows, cols, n_rows, end, hidden, BM, BN, BK)
    index = (cols[None, :] == target[:, None]) & (cols < end)[None, :]
    picked = tl.sum(tl.where(index, logits, 0.0), axis=1)
    logits = tl.where((cols < end)[None, :], logits, -float("inf"))
    largest = tl.max(logits, axis=1)
    total = tl.sum(tl.exp(logits - largest[:, None]), axis=1)
    for start in range(begin + BN, end, BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        logits = logits_of(x_ptr, w_ptr, rows, cols, n_rows, end, hidden, BM, BN, BK)
        index = (cols[None, :] == target[:, None]) & (cols < end)[None, :]
        picked += tl.sum(tl.where(index, logits, 0.0), axis=1)
        logits = tl.where((cols < end)[None, :], logits, -float("inf"))
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    tl.store(max_ptr + rows * PARTS + part, largest, mask=inside)
    tl.store(sum_ptr + rows * PARTS + part, total, mask=inside)
    tl.store(picked_ptr + rows * PARTS + part, picked, mask=inside)


@triton.jit
def combine_kernel(
    max_ptr, sum_ptr, picked_ptr, out_ptr, n_rows, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    parts = tl.arange(0, PARTS)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = (rows < n_rows)[:, None] & (parts < PARTS)[None, :]
        places = rows[:, None] * PARTS + parts[None, :]
        m = tl.load(max_ptr + places, mask=mask, other=0.0)
        s = tl.load(sum_ptr + places, mask=mask, other=1.0)
        picked = tl.sum(tl.load(picked_ptr + places, mask=mask, other=0.0), axis=1)
        top = tl.max(m, axis=1)
        loss = tl.log(tl.sum(s * tl.exp(m - top[:, None]), axis=1)) + top - picked
        acc += tl.where(rows < n_rows, loss, 0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    BM, BN, BK = 16, 64, 64
    PARTS = 8 if n_classes >= 2048 else 1
    per_part = triton.cdiv(triton.cdiv(n_classes, BN), PARTS) * BN
    options = {"dtype": torch.float32, "device": x.device}
    largest, total, picked = (torch.empty((n_rows, PARTS), **options) for _ in range(3))
    out = torch.empty((), dtype=x.dtype, device=x.device)
    part_kernel[(triton.cdiv(n_rows, BM), PARTS)](
        x, weight, target, largest, total, picked, n_rows, n_classes, hidden, per_part,
        PARTS=PARTS, BM=BM, BN=BN, BK=BK,
    )
    combine_kernel[(1,)](largest, total, picked, out, n_rows, PARTS=PARTS, BLOCK=128)
    return out
