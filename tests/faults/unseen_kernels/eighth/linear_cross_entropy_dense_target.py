"""x and weight are made contiguous, the target is taken to be so; wrong where it is a column of a matrix of labels.

op: linear_cross_entropy
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, total_ptr, n_rows, n_classes, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    target = tl.load(target_ptr + rows, mask=rows < n_rows, other=0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    chosen = tl.zeros((BM,), dtype=tl.float32)
    for first in range(0, n_classes, BN):
        cols = first + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, hidden, BK):
            ks = start + tl.arange(0, BK)
            x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :],
                        mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + cols[None, :] * hidden + ks[:, None],
                        mask=(cols < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0)
            acc += tl.dot(x, w, input_precision="ieee")
        chosen += tl.sum(tl.where(cols[None, :] == target[:, None], acc, 0.0), axis=1)
        acc = tl.where((cols < n_classes)[None, :], acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        largest = new
    loss = tl.where(rows < n_rows, largest + tl.log(total) - chosen, 0.0)
    tl.atomic_add(total_ptr, tl.sum(loss, axis=0) / n_rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight = x.contiguous(), weight.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    total = torch.zeros((), dtype=torch.float32, device=x.device)
    kernel[(triton.cdiv(n_rows, 32),)](
        x, weight, target, total, n_rows, n_classes, hidden, BM=32, BN=64, BK=32
    )
    return total.to(x.dtype)
