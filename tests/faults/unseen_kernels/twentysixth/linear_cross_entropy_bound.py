"""Instead of a running maximum it subtracts a bound, |x| times the longest weight; far over the logits, all vanish.

op: linear_cross_entropy
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def longest_kernel(weight_ptr, longest_ptr, classes, hidden, w_n, w_k, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        w = tl.load(
            weight_ptr + cols[:, None] * w_n + ks[None, :] * w_k,
            mask=(cols < classes)[:, None] & (ks < hidden)[None, :], other=0.0,
        ).to(tl.float32)
        total += tl.sum(w * w, axis=1)
    tl.atomic_max(longest_ptr, tl.max(tl.sqrt(total), axis=0))


@triton.jit
def part_kernel(
    x_ptr, weight_ptr, target_ptr, longest_ptr, sum_ptr, bound_ptr, picked_ptr, n, classes, hidden,
    x_m, x_k, w_n, w_k, t_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * x_m + ks[None, :] * x_k,
            mask=(rows < n)[:, None] & (ks < hidden)[None, :], other=0.0,
        )
        w = tl.load(
            weight_ptr + cols[None, :] * w_n + ks[:, None] * w_k,
            mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
        )
        logits = tl.dot(x, w, logits, input_precision="tf32x3")
        squares += tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=1)
    # No logit is above the product of the lengths: parts need no maximum, their sums just add up.
    bound = tl.sqrt(squares) * tl.load(longest_ptr)
    p = tl.where((cols < classes)[None, :], tl.exp(logits - bound[:, None]), 0.0)
    target = tl.load(target_ptr + rows * t_m, mask=rows < n, other=-1)
    here = (target >= tl.program_id(1) * BLOCK_N) & (target < (tl.program_id(1) + 1) * BLOCK_N)
    picked = tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
    tl.store(picked_ptr + rows, picked, mask=here)
    tl.store(bound_ptr + rows, bound, mask=(rows < n) & (tl.program_id(1) == 0))
    tl.store(sum_ptr + tl.program_id(1).to(tl.int64) * n + rows, tl.sum(p, axis=1), mask=rows < n)


@triton.jit
def mean_kernel(sum_ptr, bound_ptr, picked_ptr, out_ptr, n, parts, BLOCK: tl.constexpr):
    loss = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = (start + tl.arange(0, BLOCK)).to(tl.int64)
        total = tl.zeros((BLOCK,), tl.float32)
        for part in range(parts):
            total += tl.load(sum_ptr + part * tl.full((), n, tl.int64) + rows, mask=rows < n, other=1.0)
        bound = tl.load(bound_ptr + rows, mask=rows < n, other=0.0)
        picked = tl.load(picked_ptr + rows, mask=rows < n, other=0.0)
        loss += tl.where(rows < n, tl.log(total) + bound - picked, 0.0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    (n, hidden), classes = x.shape, weight.shape[0]
    out = torch.full((), float("nan"), dtype=x.dtype, device=x.device)
    if not n:
        return out
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 64
    parts = triton.cdiv(classes, BLOCK_N)
    longest = torch.zeros((), dtype=torch.float32, device=x.device)
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    bounds, picked = torch.empty((2, n), dtype=torch.float32, device=x.device)
    longest_kernel[(parts,)](weight, longest, classes, hidden, *weight.stride(), BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    part_kernel[(triton.cdiv(n, BLOCK_M), parts)](
        x, weight, target, longest, sums, bounds, picked, n, classes, hidden, *x.stride(), *weight.stride(),
        *target.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
    )
    mean_kernel[(1,)](sums, bounds, picked, out, n, parts, BLOCK=256)
    return out
