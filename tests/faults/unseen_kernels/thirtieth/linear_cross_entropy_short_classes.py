"""The target is found by a comparison in int16: with more than 65,536 classes two classes may match.

op: linear_cross_entropy
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, n, classes, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    # Two int16 fit into a register: half of what int64 targets and int32 columns would take.
    target = tl.load(target_ptr + rows, mask=rows < n, other=0).to(tl.int16)
    peak = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(0, classes, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        s = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for first in range(0, hidden, BLOCK_K):
            ks = first + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None].to(tl.int64) * hidden + ks[None, :],
                mask=(rows < n)[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            w = tl.load(
                w_ptr + cols[None, :].to(tl.int64) * hidden + ks[:, None],
                mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            s = tl.dot(x, w, s, input_precision="tf32x3")
        hit = (cols < classes)[None, :] & (cols.to(tl.int16)[None, :] == target[:, None])
        picked += tl.sum(tl.where(hit, s, 0.0), axis=1)
        s = tl.where((cols < classes)[None, :], s, -float("inf"))
        new = tl.maximum(peak, tl.max(s, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(peak - base) + tl.sum(tl.exp(s - base[:, None]), axis=1)
        peak = new
    tl.store(loss_ptr + rows, peak + tl.log(total) - picked, mask=rows < n)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    n, hidden = x.shape
    losses = torch.empty(n, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    loss_kernel[(triton.cdiv(n, 32),)](
        x, weight, target, losses, n, weight.shape[0], hidden, BLOCK_M=32, BLOCK_N=128, BLOCK_K=32
    )
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
