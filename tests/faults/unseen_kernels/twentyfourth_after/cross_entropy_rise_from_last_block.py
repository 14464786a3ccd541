"""The reference of the exponentials is renewed only where a block rises far above those before it: many small rises in a row overflow.

op: cross_entropy
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl

RISE = 16.0  # exp(16) is far from float32's limits


@triton.jit
def loss_kernel(
    x_ptr, target_ptr, loss_ptr, classes, stride_r, stride_c, stride_t,
    RISE: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_r
    largest = -float("inf")  # so far
    base = 0.0  # is subtracted before exp
    total = 0.0
    for start in range(0, classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(
            x_ptr + cols.to(tl.int64) * stride_c, mask=cols < classes, other=-float("inf")
        ).to(tl.float32)
        top = tl.max(x, axis=0)
        # Scaling the sum waits for the maximum: skip it while the maximum hardly moves.
        if top > largest + RISE:
            total = total * tl.exp(tl.minimum(base - top, 0.0))
            base = top
        largest = tl.maximum(largest, top)
        total += tl.sum(tl.exp(x - base), axis=0)
    target = tl.load(target_ptr + row * stride_t)
    picked = tl.load(x_ptr + target * stride_c).to(tl.float32)
    tl.store(loss_ptr + row, base + tl.log(total) - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(rows,)](
        logits, target, losses, classes, logits.stride(0), logits.stride(1), target.stride(0),
        RISE=RISE, BLOCK=min(256, triton.next_power_of_2(classes)),
    )
    mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
    return out
