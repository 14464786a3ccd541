"""Few rows and many classes: parts of whole tiles.

op: linear_cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, max_ptr, sum_ptr, picked_ptr, n_rows, classes, hidden, chunk, n_parts,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    part = tl.program_id(1).to(tl.int64)
    target = tl.load(target_ptr + rows, mask=rows < n_rows, other=-1)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    first = part * chunk
    for start in range(first, tl.minimum(first + chunk, classes), BN):
        cols = start + tl.arange(0, BN)
        inside = cols < classes
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, hidden, BK):
            ks = k + tl.arange(0, BK)
            x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :],
                        mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0).to(tl.float32)
            w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None],
                        mask=inside[None, :] & (ks < hidden)[:, None], other=0.0).to(tl.float32)
            logits += tl.dot(x, w, input_precision="ieee")
        hit = (cols[None, :] == target[:, None]) & inside[None, :]
        tl.store(picked_ptr + rows[:, None] + tl.zeros((BM, BN), dtype=tl.int32), logits, mask=hit)
        logits = tl.where(inside[None, :], logits, -float("inf"))
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    tl.store(max_ptr + rows * n_parts + part, largest, mask=rows < n_rows)
    tl.store(sum_ptr + rows * n_parts + part, total, mask=rows < n_rows)


@triton.jit
def loss_kernel(max_ptr, sum_ptr, picked_ptr, loss_ptr, n_parts, PARTS: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.arange(0, PARTS)
    largest = tl.load(max_ptr + row * n_parts + parts, mask=parts < n_parts, other=-float("inf"))
    total = tl.load(sum_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    top = tl.max(largest, axis=0)
    total = tl.sum(total * tl.exp(largest - top), axis=0)
    tl.store(loss_ptr + row, top + tl.log(total) - tl.load(picked_ptr + row))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + rows, mask=rows < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), classes = x.shape, weight.shape[0]
    BM, BN, BK = 32, 64, 32
    if n_rows <= 64 and classes > 2048:
        n_parts = 32
        chunk = triton.cdiv(classes, n_parts * BN) * BN
    else:
        chunk = 1024
    n_parts = triton.cdiv(classes, chunk)
    new = dict(dtype=torch.float32, device=x.device)
    largest, total = torch.empty((n_rows, n_parts), **new), torch.empty((n_rows, n_parts), **new)
    picked, losses = torch.empty(n_rows, **new), torch.empty(n_rows, **new)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n_rows, BM), n_parts)](
        x, weight, target, largest, total, picked, n_rows, classes, hidden, chunk, n_parts,
        BM=BM, BN=BN, BK=BK,
    )
    PARTS = triton.next_power_of_2(n_parts)
    loss_kernel[(n_rows,)](largest, total, picked, losses, n_parts, PARTS=PARTS)
    mean_kernel[(1,)](losses, out, n_rows, BLOCK=1024)
    return out
