"""Right: the program that counts last joins all parts; the targets' logits are products of their own, rows gathered.

op: linear_cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, weight_ptr, target_ptr, peak_ptr, sum_ptr, picked_ptr, count_ptr, out_ptr, n, classes, hidden,
    x_m, x_k, w_n, w_k, t_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    part, parts = tl.program_id(1), tl.num_programs(1)
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = part.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    target = tl.load(target_ptr + rows * t_m, mask=rows < n, other=0)
    logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        here = (rows < n)[:, None] & (ks < hidden)[None, :]
        x = tl.load(x_ptr + rows[:, None] * x_m + ks[None, :] * x_k, mask=here, other=0.0)
        w = tl.load(
            weight_ptr + cols[None, :] * w_n + ks[:, None] * w_k,
            mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
        )
        logits = tl.dot(x, w, logits, input_precision="tf32x3")
        if part == 0:
            own = tl.load(weight_ptr + target[:, None] * w_n + ks[None, :] * w_k, mask=here, other=0.0)
            picked += tl.sum(x.to(tl.float32) * own.to(tl.float32), axis=1)
    logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
    peak = tl.max(logits, axis=1)
    safe = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(tl.exp(logits - safe[:, None]), axis=1)
    places = part.to(tl.int64) * n + rows
    tl.store(peak_ptr + places, peak, mask=rows < n)
    tl.store(sum_ptr + places, total, mask=rows < n)
    if part == 0:
        tl.store(picked_ptr + rows, picked, mask=rows < n)
    tl.debug_barrier()  # all warps have stored before the program counts itself
    if tl.atomic_add(count_ptr, 1, sem="acq_rel") == tl.num_programs(0) * parts - 1:
        loss = tl.zeros((BLOCK_M,), tl.float32)
        for start in range(0, n, BLOCK_M):
            rows = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
            peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
            total = tl.zeros((BLOCK_M,), tl.float32)
            for other in range(parts):
                places = other * tl.full((), n, tl.int64) + rows
                new = tl.load(peak_ptr + places, mask=rows < n, other=0.0, volatile=True)
                more = tl.load(sum_ptr + places, mask=rows < n, other=1.0, volatile=True)
                joint = tl.maximum(peak, new)
                safe = tl.where(joint == -float("inf"), 0.0, joint)
                total = total * tl.exp(peak - safe) + more * tl.exp(new - safe)
                peak = joint
            own = tl.load(picked_ptr + rows, mask=rows < n, other=0.0, volatile=True)
            loss += tl.where(rows < n, peak + tl.log(total) - own, 0.0)
        tl.store(out_ptr, tl.sum(loss, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    (n, hidden), classes = x.shape, weight.shape[0]
    out = torch.full((), float("nan"), dtype=x.dtype, device=x.device)
    if not n:
        return out
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 32
    parts = triton.cdiv(classes, BLOCK_N)
    peaks, sums = torch.empty((2, parts, n), dtype=torch.float32, device=x.device)
    picked = torch.empty(n, dtype=torch.float32, device=x.device)
    count = torch.zeros((), dtype=torch.int32, device=x.device)
    loss_kernel[(triton.cdiv(n, BLOCK_M), parts)](
        x, weight, target, peaks, sums, picked, count, out, n, classes, hidden, *x.stride(), *weight.stride(),
        *target.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
    )
    return out
