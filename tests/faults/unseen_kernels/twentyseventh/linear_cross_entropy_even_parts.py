"""Ends of the parts of the classes are products with a float32 width: for some counts the last end is one too low.

op: linear_cross_entropy
status: failed
cause: bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, weight_ptr, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, hidden, width,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    part = tl.program_id(1)
    # Parts of the same length, give or take one: no program has more work than another.
    first = (part * width).to(tl.int32)
    last = ((part + 1) * width).to(tl.int32)
    target = tl.load(target_ptr + rows, mask=rows < n_rows, other=-1)
    peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(first, last, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, hidden, BLOCK_K):
            ks = k + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            weight = tl.load(
                weight_ptr + cols.to(tl.int64)[None, :] * hidden + ks[:, None],
                mask=(cols < last)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            logits = tl.dot(x, weight, logits, input_precision="ieee")
        hit = (cols[None, :] == target[:, None]) & (cols < last)[None, :]
        picked += tl.sum(tl.where(hit, logits, 0.0), axis=1)
        logits = tl.where((cols < last)[None, :], logits, -float("inf"))
        new = tl.maximum(peak, tl.max(logits, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(peak - safe) + tl.sum(tl.exp(logits - safe[:, None]), axis=1)
        peak = new
    here = (target >= first) & (target < last)
    tl.store(picked_ptr + rows, picked, mask=here & (rows < n_rows))
    tl.store(peak_ptr + part.to(tl.int64) * n_rows + rows, peak, mask=rows < n_rows)
    tl.store(sum_ptr + part.to(tl.int64) * n_rows + rows, total, mask=rows < n_rows)


@triton.jit
def join_kernel(peak_ptr, sum_ptr, picked_ptr, out_ptr, n_rows, parts, BLOCK: tl.constexpr):
    losses = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = rows < n_rows
        peak = tl.full((BLOCK,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for part in range(parts):
            at = part * n_rows + rows
            other = tl.load(peak_ptr + at, mask=mask, other=0.0)
            new = tl.maximum(peak, other)
            safe = tl.where(new == -float("inf"), 0.0, new)
            more = tl.load(sum_ptr + at, mask=mask, other=1.0)
            total = total * tl.exp(peak - safe) + more * tl.exp(other - safe)
            peak = new
        picked = tl.load(picked_ptr + rows, mask=mask, other=0.0)
        losses += tl.where(mask, tl.log(total) + peak - picked, 0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / n_rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), classes = x.shape, weight.shape[0]
    parts = max(1, min(132, classes // 512))
    options = {"dtype": torch.float32, "device": x.device}
    peaks, sums = torch.empty((parts, n_rows), **options), torch.empty((parts, n_rows), **options)
    picked = torch.zeros(n_rows, **options)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    part_kernel[(triton.cdiv(n_rows, 32), parts)](
        x, weight, target, peaks, sums, picked, n_rows, hidden, classes / parts,
        BLOCK_M=32, BLOCK_N=64, BLOCK_K=64,
    )
    join_kernel[(1,)](peaks, sums, picked, out, n_rows, parts, BLOCK=256)
    return out
