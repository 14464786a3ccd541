"""The sum of the losses is divided by the rows of all tiles, also those that the last one pads.

op: linear_cross_entropy
status: failed
cause: wrong_formula
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, w_ptr, target_ptr, out_ptr, n_rows, n_classes, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    picked = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n_classes, BN):
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
    loss = tl.where(inside, tl.log(total) + largest - picked, 0.0)
    tl.atomic_add(out_ptr, tl.sum(loss, axis=0) / (tl.num_programs(0) * BM))


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    loss_kernel[(triton.cdiv(n_rows, 16),)](
        x, weight, target, out, n_rows, n_classes, hidden, BM=16, BN=64, BK=32
    )
    return out.to(x.dtype)
