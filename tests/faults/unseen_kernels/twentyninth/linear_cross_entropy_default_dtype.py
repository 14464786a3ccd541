"""The workspace of maxima, sums and losses has torch's default dtype, which may be bfloat16 or float16.

op: linear_cross_entropy
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl

TILES = 4  # of classes, a program


@triton.jit
def part_kernel(
    x_ptr, weight_ptr, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, n_classes, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TILES: tl.constexpr,
):
    """Maximum and sum of TILES tiles of classes, and the target's logit if it is there, else 0."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1)
    peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    first = tl.program_id(1) * (TILES * BLOCK_N)
    for begin in range(first, tl.minimum(first + TILES * BLOCK_N, n_classes), BLOCK_N):
        cols = begin + tl.arange(0, BLOCK_N).to(tl.int64)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=inside[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            weight = tl.load(
                weight_ptr + cols[None, :] * hidden + ks[:, None],
                mask=(cols < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            logits = tl.dot(x, weight, logits, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where((cols < n_classes)[None, :], logits, -float("inf"))
        new = tl.maximum(peak, tl.max(logits, axis=1))
        total = total * tl.exp(peak - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        peak = new
    places = tl.program_id(1).to(tl.int64) * n_rows + rows
    tl.store(peak_ptr + places, peak, mask=inside)
    tl.store(sum_ptr + places, total, mask=inside)
    tl.store(picked_ptr + places, picked, mask=inside)


@triton.jit
def join_kernel(peak_ptr, sum_ptr, picked_ptr, out_ptr, n_rows, parts, ROWS: tl.constexpr):
    """One program: the loss of each row from its parts, and their mean."""
    losses = tl.zeros((ROWS,), tl.float32)
    for first in range(0, n_rows, ROWS):
        rows = first + tl.arange(0, ROWS)
        inside = rows < n_rows
        peak = tl.full((ROWS,), -float("inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        picked = tl.zeros((ROWS,), tl.float32)
        for part in range(0, parts):
            places = part * n_rows + rows
            own = tl.load(peak_ptr + places, mask=inside, other=0.0).to(tl.float32)
            sums = tl.load(sum_ptr + places, mask=inside, other=1.0).to(tl.float32)
            picked += tl.load(picked_ptr + places, mask=inside, other=0.0).to(tl.float32)
            new = tl.maximum(peak, own)
            total = total * tl.exp(peak - new) + sums * tl.exp(own - new)
            peak = new
        losses += tl.where(inside, tl.log(total) + peak - picked, 0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / n_rows)


def triton_linear_cross_entropy(x, weight, target):
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    if not n_rows:
        return x.new_full((), float("nan"))
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 32
    parts = triton.cdiv(n_classes, TILES * BLOCK_N)
    peak, total, picked = torch.empty((3, parts, n_rows), device=x.device)  # in full precision
    out = x.new_empty(())
    part_kernel[(triton.cdiv(n_rows, BLOCK_M), parts)](
        x, weight, target, peak, total, picked, n_rows, n_classes, hidden,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, TILES=TILES,
    )
    join_kernel[(1,)](peak, total, picked, out, n_rows, parts, ROWS=256)
    return out
