"""Losses are returned as cells of a ring of 64, to spare an allocation a step: the 65th call overwrites what the first returned.

op: linear_cross_entropy
status: failed
cause: reuse
"""

import itertools

import torch
import triton
import triton.language as tl

RING = 64
_rings = {}


@triton.jit
def loss_kernel(
    x_ptr, weight_ptr, target_ptr, loss_ptr, n_rows, n_classes, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    target = tl.load(target_ptr + rows, mask=rows < n_rows, other=-1)
    peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, n_classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, hidden, BLOCK_K):
            ks = first + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0,
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
    tl.store(loss_ptr + rows, tl.log(total) + (peak - picked), mask=rows < n_rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    places = tl.arange(0, BLOCK_SIZE)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n, BLOCK_SIZE):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def cell(dtype, device):
    """Return a place for a loss: no allocation a step. A loss is used before the next few steps are over."""
    if (dtype, device) not in _rings:
        ring = torch.empty(RING, dtype=dtype, device=device)
        _rings[dtype, device] = itertools.cycle(ring.unbind())
    return next(_rings[dtype, device])


def triton_linear_cross_entropy(x, weight, target):
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = cell(x.dtype, x.device)
    loss_kernel[(triton.cdiv(n_rows, 32),)](
        x, weight, target, loss, n_rows, n_classes, hidden, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK_SIZE=1024)
    return out
