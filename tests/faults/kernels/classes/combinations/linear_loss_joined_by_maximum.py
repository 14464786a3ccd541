"""Several parts: their sums are joined relative to the largest maximum.

op: linear_cross_entropy
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, w_ptr, target_ptr, max_ptr, sum_ptr, picked_ptr, n_rows, n_classes, hidden, per_part,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    first = tl.program_id(1) * per_part
    for start in range(first, min(first + per_part, n_classes), BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, hidden, BK):
            ks = k + tl.arange(0, BK)
            x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :],
                        mask=inside[:, None] & (ks < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None],
                        mask=(cols < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0)
            logits += tl.dot(x, w, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where((cols < n_classes)[None, :], logits, -float("inf"))
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    place = tl.program_id(1).to(tl.int64) * n_rows + rows
    tl.store(max_ptr + place, largest, mask=inside)
    tl.store(sum_ptr + place, total, mask=inside)
    tl.store(picked_ptr + place, picked, mask=inside)


@triton.jit
def join_kernel(max_ptr, sum_ptr, picked_ptr, loss_ptr, n_rows, parts, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    inside = rows < n_rows
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    picked = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(0, parts):
        place = part * n_rows + rows
        its = tl.load(max_ptr + place, mask=inside, other=0.0)
        largest = tl.maximum(largest, its)
        picked += tl.load(picked_ptr + place, mask=inside, other=0.0)
    for part in range(0, parts):
        place = part * n_rows + rows
        its = tl.load(max_ptr + place, mask=inside, other=0.0)
        total += tl.load(sum_ptr + place, mask=inside, other=1.0) * tl.exp(its - largest)
    tl.store(loss_ptr + rows, tl.log(total) + largest - picked, mask=inside)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        places = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + places, mask=places < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    per_part = 512
    parts = triton.cdiv(n_classes, per_part)
    largest, total, picked = torch.empty(
        (3, parts, n_rows), dtype=torch.float32, device=x.device
    )
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    part_kernel[(triton.cdiv(n_rows, 16), parts)](
        x, weight, target, largest, total, picked, n_rows, n_classes, hidden, per_part,
        BM=16, BN=64, BK=32,
    )
    grid = (triton.cdiv(n_rows, 64),)
    join_kernel[grid](largest, total, picked, loss, n_rows, parts, BLOCK=64)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
