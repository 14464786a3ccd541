"""The workspace of the parts has torch's default dtype: where that is set to bfloat16, float32 losses lose most bits.

op: linear_cross_entropy
status: failed
cause: default_dtype
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(
    x_ptr, weight_ptr, target_ptr, work_ptr, rows_n, classes, hidden, parts, part_size,
    x_r, x_h, w_c, w_h, t_r, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    part = tl.program_id(0) % parts
    rows = (tl.program_id(0) // parts).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < rows_n
    target = tl.load(target_ptr + rows * t_r, mask=inside, other=0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(part * part_size, tl.minimum(classes, (part + 1) * part_size), BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for first in range(0, hidden, BLOCK_K):
            ks = first + tl.arange(0, BLOCK_K).to(tl.int64)
            x = tl.load(
                x_ptr + rows[:, None] * x_r + ks[None, :] * x_h, mask=inside[:, None] & (ks < hidden)[None, :], other=0.0
            )
            w = tl.load(
                weight_ptr + cols[None, :] * w_c + ks[:, None] * w_h,
                mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], acc, 0.0), axis=1)
        acc = tl.where((cols < classes)[None, :], acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(acc - base[:, None]), axis=1)
        largest = new
    work_ptr += part * rows_n + rows
    tl.store(work_ptr, largest, mask=inside)
    tl.store(work_ptr + parts * rows_n, total, mask=inside)
    tl.store(work_ptr + 2 * parts * rows_n, picked, mask=inside)


@triton.jit
def join_kernel(work_ptr, out_ptr, rows_n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    losses = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows_n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        inside = rows < rows_n
        largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
        for part in range(PARTS):
            value = tl.load(work_ptr + part * rows_n + rows, mask=inside, other=0.0).to(tl.float32)
            largest = tl.maximum(largest, value, propagate_nan=tl.PropagateNan.ALL)
        base = tl.where(largest == -float("inf"), 0.0, largest)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        picked = tl.zeros((BLOCK,), dtype=tl.float32)
        for part in range(PARTS):
            at = work_ptr + part * rows_n + rows
            value = tl.load(at, mask=inside, other=0.0).to(tl.float32)
            total += tl.load(at + PARTS * rows_n, mask=inside, other=1.0).to(tl.float32) * tl.exp(value - base)
            picked += tl.load(at + 2 * PARTS * rows_n, mask=inside, other=0.0).to(tl.float32)
        losses += tl.where(inside, base + tl.log(total) - picked, 0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / rows_n)


def triton_linear_cross_entropy(x, weight, target):
    (rows, hidden), classes = x.shape, weight.shape[0]
    out = torch.empty((), dtype=x.dtype, device=x.device)
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 32
    tiles = triton.cdiv(classes, BLOCK_N)
    part_size = triton.cdiv(tiles, min(8, tiles)) * BLOCK_N
    parts = triton.cdiv(classes, part_size)  # none is empty
    work = torch.empty((3, parts, rows), device=x.device)
    parts_kernel[(triton.cdiv(rows, BLOCK_M) * parts,)](
        x, weight, target, work, rows, classes, hidden, parts, part_size, *x.stride(), *weight.stride(),
        target.stride(0), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
    )
    join_kernel[(1,)](work, out, rows, PARTS=parts, BLOCK=min(1024, triton.next_power_of_2(rows)))
    return out
