"""The product knows both strides of weight, but the second kernel, which gathers the targets' rows, takes their elements as neighbours.

op: linear_cross_entropy
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lse_kernel(
    x_ptr, w_ptr, lse_ptr, n_rows, n_classes, hidden, xr, xh, wc, wh,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    for first in range(0, n_classes, BN):
        classes = (first + tl.arange(0, BN)).to(tl.int64)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, hidden, BK):
            ks = start + tl.arange(0, BK)
            x = tl.load(x_ptr + rows[:, None] * xr + ks[None, :] * xh,
                        mask=(rows < n_rows)[:, None] & (ks < hidden)[None, :], other=0.0).to(tl.float32)
            w = tl.load(w_ptr + classes[None, :] * wc + ks[:, None] * wh,
                        mask=(classes < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0).to(tl.float32)
            acc += tl.dot(x, w, input_precision="ieee")
        acc = tl.where((classes < n_classes)[None, :], acc, -float("inf"))
        new = tl.maximum(largest, tl.max(acc, axis=1))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        largest = new
    tl.store(lse_ptr + rows, largest + tl.log(total), mask=rows < n_rows)


@triton.jit
def target_kernel(x_ptr, w_ptr, target_ptr, lse_ptr, hidden, xr, xh, wc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        ks = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * xr + ks * xh, mask=ks < hidden, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + target * wc + ks, mask=ks < hidden, other=0.0).to(tl.float32)
        acc += x * w
    tl.store(lse_ptr + row, tl.load(lse_ptr + row) - tl.sum(acc, axis=0))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    target = target.contiguous()
    n_rows, hidden = x.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    lse_kernel[(triton.cdiv(n_rows, 64),)](
        x, weight, loss, n_rows, weight.shape[0], hidden, *x.stride(), *weight.stride(), BM=64, BN=64, BK=32
    )
    target_kernel[(n_rows,)](x, weight, target, loss, hidden, *x.stride(), weight.stride(0), BLOCK=256)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
