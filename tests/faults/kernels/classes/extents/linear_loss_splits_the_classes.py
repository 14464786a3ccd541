"""The classes are split into parts of whole tiles; a second kernel joins maxima, sums and targets' logits.

op: linear_cross_entropy
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, w_ptr, target_ptr, part_ptr, n_rows, n_classes, hidden, per_part,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    part, n_parts = tl.program_id(1), tl.num_programs(1)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for start in range(part * per_part, tl.minimum(n_classes, (part + 1) * per_part), BN):
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
    line = part_ptr + (rows * n_parts + part) * 3
    tl.store(line, largest, mask=inside)
    tl.store(line + 1, total, mask=inside)
    tl.store(line + 2, picked, mask=inside)


@triton.jit
def join_kernel(part_ptr, out_ptr, n_rows, n_parts, ROWS: tl.constexpr, PARTS: tl.constexpr):
    acc = tl.zeros((ROWS,), dtype=tl.float32)
    parts = tl.arange(0, PARTS)[None, :]
    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows < n_rows)[:, None] & (parts < n_parts)
        line = part_ptr + (rows[:, None] * n_parts + parts) * 3
        largest = tl.load(line, mask=mask, other=-float("inf"))
        total = tl.load(line + 1, mask=mask, other=0.0)
        picked = tl.sum(tl.load(line + 2, mask=mask, other=0.0), axis=1)
        peak = tl.where(rows < n_rows, tl.max(largest, axis=1), 0.0)
        joined = tl.sum(total * tl.exp(largest - peak[:, None]), axis=1)
        acc += tl.where(rows < n_rows, tl.log(joined) + peak - picked, 0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    n_parts = min(8, triton.cdiv(n_classes, 128))
    per_part = triton.cdiv(triton.cdiv(n_classes, n_parts), 64) * 64
    parts = torch.empty((n_rows, n_parts, 3), dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    part_kernel[(triton.cdiv(n_rows, 16), n_parts)](
        x, weight, target, parts, n_rows, n_classes, hidden, per_part, BM=16, BN=64, BK=32
    )
    join_kernel[(1,)](parts, out, n_rows, n_parts, ROWS=64, PARTS=triton.next_power_of_2(n_parts))
    return out
