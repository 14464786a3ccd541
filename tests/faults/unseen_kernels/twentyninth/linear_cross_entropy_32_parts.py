"""The kernel that joins the parts reads 32 of them, 131,072 classes: a larger vocabulary loses its end.

op: linear_cross_entropy
status: failed
cause: capacity
"""

import torch
import triton
import triton.language as tl

PART = 4096  # classes a program
PARTS = 32


@triton.jit
def part_kernel(
    x_ptr, weight_ptr, target_ptr, lse_ptr, picked_ptr, n_rows, n_classes, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PART: tl.constexpr,
):
    """The logsumexp of one part of the classes for a block of rows, in base 2."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1)
    peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    first = tl.program_id(1) * PART
    for begin in range(first, tl.minimum(first + PART, n_classes), BLOCK_N):
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
        logits *= 1.4426950408889634
        hit = cols[None, :] == target[:, None]
        here = (target >= begin) & (target < begin + BLOCK_N) & inside
        tl.store(picked_ptr + rows, tl.sum(tl.where(hit, logits, 0.0), axis=1), mask=here)
        logits = tl.where((cols < n_classes)[None, :], logits, -float("inf"))
        new = tl.maximum(peak, tl.max(logits, axis=1))
        total = total * tl.exp2(peak - new) + tl.sum(tl.exp2(logits - new[:, None]), axis=1)
        peak = new
    tl.store(lse_ptr + rows * tl.num_programs(1) + tl.program_id(1), peak + tl.log2(total), mask=inside)


@triton.jit
def join_kernel(lse_ptr, picked_ptr, loss_ptr, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    which = tl.arange(0, PARTS)
    lse = tl.load(lse_ptr + row * parts + which, mask=which < parts, other=-float("inf"))
    peak = tl.max(lse, axis=0)
    lse = peak + tl.log2(tl.sum(tl.exp2(lse - peak), axis=0))
    tl.store(loss_ptr + row, (lse - tl.load(picked_ptr + row)) * 0.6931471805599453)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    places = tl.arange(0, BLOCK_SIZE)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n, BLOCK_SIZE):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    if not n_rows:
        return x.new_full((), float("nan"))
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    parts = triton.cdiv(n_classes, PART)
    options = {"dtype": torch.float32, "device": x.device}
    lse = torch.empty((n_rows, parts), **options)
    picked, loss = (torch.empty(n_rows, **options) for _ in range(2))
    out = x.new_empty(())
    BLOCK_M, BLOCK_N = 16 if n_rows <= 16 else 32, 128
    part_kernel[(triton.cdiv(n_rows, BLOCK_M), parts)](
        x, weight, target, lse, picked, n_rows, n_classes, hidden,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=32, PART=PART,
    )
    join_kernel[(n_rows,)](lse, picked, loss, parts, PARTS=PARTS, num_warps=1)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK_SIZE=1024)
    return out
