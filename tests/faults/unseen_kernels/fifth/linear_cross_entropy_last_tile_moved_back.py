"""The last tile of classes is moved back to be full; the classes it shares with the tile before are left out of the sum, but a target among them is picked twice.

op: linear_cross_entropy
status: failed
cause: counted twice
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, n_rows, n_classes, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    here = rows < n_rows
    target = tl.load(target_ptr + rows, mask=here, other=0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n_classes, BN):
        first = tl.maximum(tl.minimum(start, n_classes - BN), 0)
        cols = first + tl.arange(0, BN).to(tl.int64)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, hidden, BK):
            ks = k + tl.arange(0, BK)
            inside = (ks < hidden)
            x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :], mask=here[:, None] & inside[None, :], other=0.0)
            w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None], mask=(cols < n_classes)[None, :] & inside[:, None], other=0.0)
            logits = tl.dot(x.to(tl.float32), w.to(tl.float32), logits, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        fresh = (cols >= start) & (cols < n_classes)
        logits = tl.where(fresh[None, :], logits, -float("inf"))
        new = tl.maximum(most, tl.max(logits, axis=1))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        most = new
    tl.store(loss_ptr + rows, tl.log(total) + most - picked, mask=here)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, len(weight)
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n_rows, 16),)](
        x, weight, target, loss, n_rows, n_classes, hidden, BM=16, BN=64, BK=32
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
