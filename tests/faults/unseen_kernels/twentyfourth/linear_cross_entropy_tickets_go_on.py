"""The tickets of the parts are counted on from call to call: a call with eight parts after one with four joins them too early.

op: linear_cross_entropy
status: failed
cause: tickets
"""

import torch
import triton
import triton.language as tl

_counters = {}


def counters_of(device, n):
    """Return a counter for each tile of rows; a call adds as many tickets as there are parts, so nothing needs to be reset."""
    if device not in _counters or _counters[device].numel() < n:
        _counters[device] = torch.zeros(max(256, triton.next_power_of_2(n)), dtype=torch.int32, device=device)
    return _counters[device]


@triton.jit
def kernel(
    x_ptr, weight_ptr, target_ptr, work_ptr, counters_ptr, out_ptr, n, classes, hidden, chunk,
    x_n, x_h, w_c, w_h, t_n, PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile, part = tl.program_id(0), tl.program_id(1)
    rows = tile.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    ks = tl.arange(0, BLOCK_K)
    target = tl.load(target_ptr + rows * t_n, mask=rows < n, other=-1)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for first in range(part * chunk, tl.minimum(part * chunk + chunk, classes), BLOCK_N):
        cols = (first + tl.arange(0, BLOCK_N)).to(tl.int64)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, hidden, BLOCK_K):
            at = (start + ks).to(tl.int64)
            x = tl.load(
                x_ptr + rows[:, None] * x_n + at[None, :] * x_h,
                mask=(rows < n)[:, None] & (at < hidden)[None, :], other=0.0,
            )
            w = tl.load(
                weight_ptr + cols[None, :] * w_c + at[:, None] * w_h,
                mask=(cols < classes)[None, :] & (at < hidden)[:, None], other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], acc, 0.0), axis=1)
        acc = tl.where((cols < classes)[None, :], acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(acc - shift[:, None]), axis=1)
        largest = new
    at = (tile.to(tl.int64) * PARTS + part) * 3 * BLOCK_M + tl.arange(0, BLOCK_M)
    tl.store(work_ptr + at, largest)
    tl.store(work_ptr + at + BLOCK_M, total)
    tl.store(work_ptr + at + 2 * BLOCK_M, picked)
    tl.debug_barrier()
    ticket = 0
    if PARTS > 1:
        ticket = tl.atomic_add(counters_ptr + tile, 1)
    # The program that takes the last ticket of a tile finds all parts written.
    if ticket % PARTS == PARTS - 1:
        tl.debug_barrier()
        places = (tile.to(tl.int64) * PARTS + tl.arange(0, PARTS)[:, None]) * 3 * BLOCK_M + tl.arange(0, BLOCK_M)[None, :]
        largest_of = tl.load(work_ptr + places, volatile=True)
        peak = tl.max(largest_of, axis=0)
        shift = tl.where(peak == -float("inf"), 0.0, peak)
        sums = tl.load(work_ptr + places + BLOCK_M, volatile=True) * tl.exp(largest_of - shift[None, :])
        logit = tl.sum(tl.load(work_ptr + places + 2 * BLOCK_M, volatile=True), axis=0)
        loss = shift + tl.log(tl.sum(sums, axis=0)) - logit
        tl.atomic_add(out_ptr, tl.sum(tl.where(rows < n, loss, 0.0), axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    (n, hidden), classes = x.shape, weight.shape[0]
    if n == 0:
        return torch.full((), float("nan"), dtype=x.dtype, device=x.device)
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 32
    tiles = triton.cdiv(n, BLOCK_M)
    parts = 8 if classes > 4096 else 4 if classes > 512 else 1
    chunk = triton.cdiv(triton.cdiv(classes, parts), BLOCK_N) * BLOCK_N
    work = torch.empty((tiles, parts, 3, BLOCK_M), dtype=torch.float32, device=x.device)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    kernel[(tiles, parts)](
        x, weight, target, work, counters_of(x.device, tiles), out, n, classes, hidden, chunk,
        *x.stride(), *weight.stride(), target.stride(0),
        PARTS=parts, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
    )
    return out.to(x.dtype)
