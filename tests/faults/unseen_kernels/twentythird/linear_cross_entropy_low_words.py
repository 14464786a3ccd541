"""Right: targets are read as the low halves of their int64, the target's logit by itself, the classes from the last one.

op: linear_cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    x_ptr, weight_ptr, words_ptr, loss_ptr, rows_n, classes, hidden, x_r, x_h, w_c, w_h,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < rows_n
    target = tl.load(words_ptr + 2 * rows, mask=inside, other=0).to(tl.int64)
    counted = inside & (target >= 0)  # -100 is left out
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for first in range(0, hidden, BLOCK_K):
        ks = first + tl.arange(0, BLOCK_K).to(tl.int64)
        mask = counted[:, None] & (ks < hidden)[None, :]
        x = tl.load(x_ptr + rows[:, None] * x_r + ks[None, :] * x_h, mask=mask, other=0.0)
        w = tl.load(weight_ptr + target[:, None] * w_c + ks[None, :] * w_h, mask=mask, other=0.0)
        picked += tl.sum(x.to(tl.float32) * w.to(tl.float32), axis=1)
    # The target's logit is the first of the running maximum: the sum starts with its 1, and its tile leaves it out.
    largest = picked
    total = tl.full((BLOCK_M,), 1.0, dtype=tl.float32)
    for step in range(0, classes, BLOCK_N):
        cols = classes - BLOCK_N - step + tl.arange(0, BLOCK_N).to(tl.int64)  # negative at the end
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for first in range(0, hidden, BLOCK_K):
            ks = first + tl.arange(0, BLOCK_K).to(tl.int64)
            x = tl.load(
                x_ptr + rows[:, None] * x_r + ks[None, :] * x_h, mask=inside[:, None] & (ks < hidden)[None, :], other=0.0
            )
            w = tl.load(
                weight_ptr + cols[None, :] * w_c + ks[:, None] * w_h,
                mask=(cols >= 0)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        acc = tl.where((cols >= 0)[None, :] & (cols[None, :] != target[:, None]), acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(acc - base[:, None]), axis=1)
        largest = new
    loss = tl.log(total) + (largest - picked)
    tl.store(loss_ptr + rows, tl.where(counted, loss, 0.0), mask=inside)
    tl.store(loss_ptr + rows_n + rows, counted.to(tl.float32), mask=inside)


@triton.jit
def add_kernel(loss_ptr, out_ptr, rows_n, BLOCK: tl.constexpr):
    losses = tl.zeros((BLOCK,), dtype=tl.float32)
    counts = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows_n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        losses += tl.load(loss_ptr + rows, mask=rows < rows_n, other=0.0)
        counts += tl.load(loss_ptr + rows_n + rows, mask=rows < rows_n, other=0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / tl.sum(counts, axis=0))


def triton_linear_cross_entropy(x, weight, target):
    (rows, hidden), classes = x.shape, weight.shape[0]
    out = torch.empty((), dtype=x.dtype, device=x.device)
    words = target.contiguous().as_strided((rows,), (1,)).view(torch.int32)  # one row may have any stride
    losses = torch.empty((2, max(rows, 1)), dtype=torch.float32, device=x.device)
    if rows:
        BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 32
        rows_kernel[(triton.cdiv(rows, BLOCK_M),)](
            x, weight, words, losses, rows, classes, hidden, *x.stride(), *weight.stride(),
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        )
    add_kernel[(1,)](losses, out, rows, BLOCK=min(1024, triton.next_power_of_2(max(rows, 1))))
    return out
