"""The shift is |x| times the largest |weight| in place of the row's maximum: where it lies 88 or more above, all weights underflow.

op: linear_cross_entropy
status: failed
cause: range
"""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(weight_ptr, norm_ptr, n_classes, hidden, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        mask = (cols < n_classes)[:, None] & (ks < hidden)[None, :]
        w = tl.load(weight_ptr + cols[:, None] * hidden + ks[None, :], mask=mask, other=0.0).to(tl.float32)
        squares += tl.sum(w * w, axis=1)
    tl.store(norm_ptr + tl.program_id(0), tl.sqrt(tl.max(squares, axis=0)))


@triton.jit
def loss_kernel(
    x_ptr, weight_ptr, target_ptr, norm_ptr, loss_ptr, n_rows, n_classes, hidden, n_norms,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NORMS: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1)
    squares = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        mask = inside[:, None] & (ks < hidden)[None, :]
        x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :], mask=mask, other=0.0).to(tl.float32)
        squares += tl.sum(x * x, axis=1)
    places = tl.arange(0, NORMS)
    norm = tl.max(tl.load(norm_ptr + places, mask=places < n_norms, other=0.0), axis=0)
    # Cauchy and Schwarz: no logit is larger, so there is nothing to rescale in the loop.
    bound = tl.sqrt(squares) * norm
    total = tl.zeros((BLOCK_M,), tl.float32)
    picked = tl.zeros((BLOCK_M,), tl.float32)
    for first in range(0, n_classes, BLOCK_N):
        cols = first + tl.arange(0, BLOCK_N).to(tl.int64)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None] * hidden + ks[None, :],
                mask=inside[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            w = tl.load(
                weight_ptr + cols[None, :] * hidden + ks[:, None],
                mask=(cols < n_classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            acc = tl.dot(x, w, acc, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], acc, 0.0), axis=1)
        p = tl.where((cols < n_classes)[None, :], tl.exp(acc - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
    tl.store(loss_ptr + rows, tl.log(total) + bound - picked, mask=inside)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    if not n_rows:
        return x.new_full((), float("nan"))
    out = x.new_empty(())
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    n_norms = triton.cdiv(n_classes, 64)
    norms = torch.empty(n_norms, dtype=torch.float32, device=x.device)
    norm_kernel[(n_norms,)](weight, norms, n_classes, hidden, BLOCK_N=64, BLOCK_K=64)
    loss_kernel[(triton.cdiv(n_rows, 32),)](
        x, weight, target, norms, loss, n_rows, n_classes, hidden, n_norms,
        BLOCK_M=32, BLOCK_N=64, BLOCK_K=32, NORMS=triton.next_power_of_2(n_norms),
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
