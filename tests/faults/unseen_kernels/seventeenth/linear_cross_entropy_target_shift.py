"""With up to 64 hidden elements the target's logit is subtracted instead of the maximum: where another logit is larger by 89 the exponential is infinite.

op: linear_cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def shift_kernel(x_ptr, w_ptr, target_ptr, loss_ptr, rows, classes, hidden, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    ks = tl.arange(0, BK)
    mask = (at < rows)[:, None] & (ks < hidden)[None, :]
    target = tl.load(target_ptr + at, mask=at < rows, other=0)
    x = tl.load(x_ptr + at[:, None] * hidden + ks[None, :], mask=mask, other=0.0).to(tl.float32)
    chosen = tl.load(w_ptr + target[:, None] * hidden + ks[None, :], mask=mask, other=0.0).to(tl.float32)
    # The loss is log(sum(exp(logit - target's logit))): no maximum, and one pass.
    shift = tl.sum(x * chosen, axis=1)
    total = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, classes, BN):
        cols = start + tl.arange(0, BN)
        w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None], mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0)
        logits = tl.dot(x, w.to(tl.float32), input_precision="ieee")
        total += tl.sum(tl.where((cols < classes)[None, :], tl.exp(logits - shift[:, None]), 0.0), axis=1)
    tl.store(loss_ptr + at, tl.log(total), mask=at < rows)


@triton.jit
def online_kernel(x_ptr, w_ptr, target_ptr, loss_ptr, rows, classes, hidden, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    target = tl.load(target_ptr + at, mask=at < rows, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    chosen = tl.zeros((BM,), dtype=tl.float32)
    for first in range(0, classes, BN):
        cols = first + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, hidden, BK):
            ks = start + tl.arange(0, BK)
            x = tl.load(x_ptr + at[:, None] * hidden + ks[None, :], mask=(at < rows)[:, None] & (ks < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None], mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0)
            logits += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
        logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
        chosen += tl.sum(tl.where(target[:, None] == cols[None, :], logits, 0.0), axis=1)
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    tl.store(loss_ptr + at, largest - chosen + tl.log(total), mask=at < rows)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(sums, axis=0) / rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    loss = torch.empty(rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 16),)
    if hidden <= 64:
        shift_kernel[grid](x, weight, target, loss, rows, classes, hidden, BM=16, BN=64, BK=max(16, triton.next_power_of_2(hidden)))
    else:
        online_kernel[grid](x, weight, target, loss, rows, classes, hidden, BM=16, BN=64, BK=32)
    mean_kernel[(1,)](loss, out, rows, BLOCK=256)
    return out
