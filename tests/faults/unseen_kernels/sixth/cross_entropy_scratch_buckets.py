"""Losses go to a scratch buffer that is kept for each power of two of rows; fewer rows than last time leave old losses in the sum.

op: cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

_scratch = {}


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_cols, lr, lc, ts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * lr + cols * lc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    picked = tl.load(logits_ptr + row * lr + tl.load(target_ptr + row * ts) * lc).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + largest - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # the buffer is a whole block, zero past the rows: no mask
    losses = tl.load(loss_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(losses, axis=0) / n)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    length = triton.next_power_of_2(n_rows)
    key = (logits.device, length)
    if key not in _scratch:
        _scratch[key] = torch.zeros(length, dtype=torch.float32, device=logits.device)
    loss = _scratch[key]
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(n_rows,)](
        logits, target, loss, n_cols, *logits.stride(), target.stride(0),
        BLOCK=triton.next_power_of_2(n_cols),
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=length)
    return out
