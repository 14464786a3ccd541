"""Labels are read as int16: a class from 32768 on is never found.

op: linear_cross_entropy
status: failed
cause: dtype
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, loss_ptr, n_rows, classes, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    target = tl.load(target_ptr + rows, mask=rows < n_rows, other=0).to(tl.int32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for first in range(0, classes, BN):
        cols = first + tl.arange(0, BN)
        logits = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, hidden, BK):
            ks = start + tl.arange(0, BK)
            x = tl.load(x_ptr + rows[:, None].to(tl.int64) * hidden + ks[None, :],
                        mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + cols[None, :].to(tl.int64) * hidden + ks[:, None],
                        mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0)
            logits += tl.dot(x, w, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
        logits = tl.where((cols < classes)[None, :], logits, -float("inf"))
        new = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(logits - new[:, None]), axis=1)
        largest = new
    tl.store(loss_ptr + rows, tl.log(total) + largest - picked, mask=rows < n_rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.to(torch.int16)
    (n_rows, hidden), classes = x.shape, weight.shape[0]
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    kernel[(triton.cdiv(n_rows, 16),)](
        x, weight, target.contiguous(), loss, n_rows, classes, hidden, BM=16, BN=128, BK=32
    )
    return loss.mean().to(x.dtype)
