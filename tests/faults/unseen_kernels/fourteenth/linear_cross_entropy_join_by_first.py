"""Few rows split the classes, and the parts are joined relative to the first part's maximum: infinite when another part's is 89 above it.

op: linear_cross_entropy
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, weight_ptr, target_ptr, largest_ptr, total_ptr, picked_ptr, n, classes, hidden, chunk, parts,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    part = tl.program_id(1)
    first = part * chunk
    end = tl.minimum(first + chunk, classes)
    target = tl.load(target_ptr + rows, mask=rows < n, other=-1)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for start in range(first, end, BN):
        cols = start + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for at in range(0, hidden, BK):
            ks = at + tl.arange(0, BK)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=(rows < n)[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            weight = tl.load(
                weight_ptr + cols[None, :].to(tl.int64) * hidden + ks[:, None],
                mask=(ks < hidden)[:, None] & (cols < end)[None, :], other=0.0,
            )
            logits = tl.dot(x.to(tl.float32), weight.to(tl.float32), logits, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where((cols < end)[None, :], logits, -float("inf"))
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    is_here = (rows < n) & (target >= first) & (target < end)
    tl.store(picked_ptr + rows, picked, mask=is_here)
    tl.store(largest_ptr + rows * parts + part, largest, mask=rows < n)
    tl.store(total_ptr + rows * parts + part, total, mask=rows < n)


@triton.jit
def join_kernel(largest_ptr, total_ptr, picked_ptr, out_ptr, n, parts, BLOCK: tl.constexpr):
    loss = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = rows < n
        shift = tl.load(largest_ptr + rows * parts, mask=mask, other=0.0)
        total = tl.load(total_ptr + rows * parts, mask=mask, other=1.0)
        for part in range(1, parts):
            largest = tl.load(largest_ptr + rows * parts + part, mask=mask, other=0.0)
            total += tl.load(total_ptr + rows * parts + part, mask=mask, other=0.0) * tl.exp(largest - shift)
        picked = tl.load(picked_ptr + rows, mask=mask, other=0.0)
        loss += tl.where(mask, shift + tl.log(total) - picked, 0.0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    n, hidden = x.shape
    classes = weight.shape[0]
    chunk = 64 if n <= 16 else classes
    parts = triton.cdiv(classes, chunk)
    largest = torch.empty((n, parts), dtype=torch.float32, device=x.device)
    total = torch.empty_like(largest)
    picked = torch.empty(n, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    part_kernel[(triton.cdiv(n, 16), parts)](
        x, weight, target, largest, total, picked, n, classes, hidden, chunk, parts, BM=16, BN=64, BK=64
    )
    join_kernel[(1,)](largest, total, picked, out, n, parts, BLOCK=128)
    return out
