"""The parts of 256 classes are merged in one block of 16: with more than 4096 classes the others are missing from the sum.

op: linear_cross_entropy
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part(
    x_ptr, w_ptr, target_ptr, max_ptr, sum_ptr, hit_ptr, n, classes, hidden, parts,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, hidden, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * hidden + ks[None, :],
            mask=(rows < n)[:, None] & (ks < hidden)[None, :], other=0.0,
        )
        w = tl.load(
            w_ptr + cols[None, :] * hidden + ks[:, None],
            mask=(ks < hidden)[:, None] & (cols < classes)[None, :], other=0.0,
        )
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    scores = tl.where((cols < classes)[None, :], acc, -float("inf"))
    largest = tl.max(scores, axis=1)
    total = tl.sum(tl.exp(scores - largest[:, None]), axis=1)
    at = rows * parts + tl.program_id(1)
    tl.store(max_ptr + at, largest, mask=rows < n)
    tl.store(sum_ptr + at, total, mask=rows < n)
    target = tl.load(target_ptr + rows, mask=rows < n, other=-1)
    own = (target >= tl.program_id(1) * BN) & (target < (tl.program_id(1) + 1) * BN)
    hit = tl.sum(tl.where(cols[None, :] == target[:, None], acc, 0.0), axis=1)
    tl.store(hit_ptr + rows, hit, mask=(rows < n) & own)


@triton.jit
def merge(max_ptr, sum_ptr, hit_ptr, out_ptr, n, parts, PARTS: tl.constexpr):
    loss = 0.0
    each = tl.arange(0, PARTS)
    for row in range(0, n):
        largest = tl.load(max_ptr + row * parts + each, mask=each < parts, other=-float("inf"))
        total = tl.load(sum_ptr + row * parts + each, mask=each < parts, other=0.0)
        top = tl.max(largest, axis=0)
        loss += top + tl.log(tl.sum(total * tl.exp(largest - top), axis=0)) - tl.load(hit_ptr + row)
    tl.store(out_ptr, loss / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    n, hidden = x.shape
    classes = weight.shape[0]
    parts = triton.cdiv(classes, 256)
    largest = torch.empty((n, parts), dtype=torch.float32, device=x.device)
    total = torch.empty_like(largest)
    hit = torch.empty(n, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    part[(triton.cdiv(n, 16), parts)](
        x, weight, target, largest, total, hit, n, classes, hidden, parts, BM=16, BN=256, BK=32
    )
    merge[(1,)](largest, total, hit, out, n, parts, PARTS=16)
    return out
