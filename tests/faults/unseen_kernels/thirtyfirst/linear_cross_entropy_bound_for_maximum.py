"""Instead of the maximum of the logits a bound of it is taken, |x| * max |w|: where it is far above them, exp gives zeros.

op: linear_cross_entropy
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def norms_kernel(weight_ptr, norms_ptr, classes, hidden, BLOCK_C: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C)
    squares = tl.zeros((BLOCK_C, BLOCK), tl.float32)
    for start in range(0, hidden, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        mask = (rows < classes)[:, None] & (inner < hidden)[None, :]
        w = tl.load(weight_ptr + rows[:, None] * hidden + inner[None, :], mask=mask, other=0.0)
        w = w.to(tl.float32)
        squares += w * w
    norms = tl.sqrt(tl.sum(squares, axis=1))
    norms = tl.where(norms < float("inf"), norms, 0.0)  # an infinite row shows in its logits
    tl.store(norms_ptr + tl.program_id(0), tl.max(norms, axis=0))


@triton.jit
def kernel(
    x_ptr, weight_ptr, target_ptr, norms_ptr, loss_ptr, n, classes, hidden, parts,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    largest = tl.zeros((BLOCK_P,), tl.float32)
    for start in range(0, parts, BLOCK_P):
        at = start + tl.arange(0, BLOCK_P)
        largest = tl.maximum(largest, tl.load(norms_ptr + at, mask=at < parts, other=0.0))
    squares = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        mask = (rows < n)[:, None] & (inner < hidden)[None, :]
        x = tl.load(x_ptr + rows[:, None] * hidden + inner[None, :], mask=mask, other=0.0)
        squares += tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=1)
    # No logit is above it (Cauchy and Schwarz), so nothing overflows and nothing is rescaled.
    bound = tl.sqrt(squares) * tl.max(largest, axis=0)
    target = tl.load(target_ptr + rows, mask=rows < n, other=0)
    others = tl.zeros((BLOCK_M,), tl.float32)
    own = tl.zeros((BLOCK_M,), tl.float32)
    for first in range(0, classes, BLOCK_C):
        cols = first + tl.arange(0, BLOCK_C)
        logits = tl.zeros((BLOCK_M, BLOCK_C), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            inner = start + tl.arange(0, BLOCK_K)
            mask = (rows < n)[:, None] & (inner < hidden)[None, :]
            x = tl.load(x_ptr + rows[:, None] * hidden + inner[None, :], mask=mask, other=0.0)
            mask = (cols < classes)[None, :] & (inner < hidden)[:, None]
            at = cols.to(tl.int64)[None, :] * hidden + inner[:, None]
            w = tl.load(weight_ptr + at, mask=mask, other=0.0)
            logits = tl.dot(x, w, logits, input_precision="ieee")
        is_own = cols[None, :] == target[:, None]
        own += tl.sum(tl.where(is_own, logits, 0.0), axis=1)
        is_other = (cols < classes)[None, :] & (cols[None, :] != target[:, None])
        others += tl.sum(tl.where(is_other, tl.exp(logits - bound[:, None]), 0.0), axis=1)
    ratio = others * tl.exp(bound - own)
    loss = tl.where(ratio < 1e-3, ratio - 0.5 * ratio * ratio, tl.log(1.0 + ratio))
    infinite = (others == float("inf")) | (tl.abs(bound) == float("inf")) | (own == float("inf"))
    tl.store(loss_ptr + rows, tl.where(infinite, float("nan"), loss), mask=rows < n)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n, hidden), classes = x.shape, weight.shape[0]
    out = torch.empty((), dtype=x.dtype, device=x.device)
    parts = triton.cdiv(classes, 64)
    norms = torch.empty(parts, dtype=torch.float32, device=x.device)
    loss = torch.empty(n, dtype=torch.float32, device=x.device)
    norms_kernel[(parts,)](weight, norms, classes, hidden, BLOCK_C=64, BLOCK=64)
    kernel[(triton.cdiv(n, 32),)](
        x, weight, target, norms, loss, n, classes, hidden, parts,
        BLOCK_M=32, BLOCK_C=64, BLOCK_K=64, BLOCK_P=64,
    )
    mean_kernel[(1,)](loss, out, n, BLOCK=1024)
    return out
