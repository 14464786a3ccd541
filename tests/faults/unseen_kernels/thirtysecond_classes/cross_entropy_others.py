"""Right: sums all classes but the target, last tile first, with a base that lags behind the maximum; skips tiles of -inf.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * classes
    target = tl.load(target_ptr + row)
    own = tl.load(x_ptr + target).to(tl.float32)
    base = -float("inf")
    total = 0.0
    last = (classes - 1) // BLOCK * BLOCK
    for back in range(0, classes, BLOCK):
        cols = last - back + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < classes, other=-float("inf")).to(tl.float32)
        x = tl.where(cols == target, -float("inf"), x)
        # A NaN differs from -inf too.
        if tl.max((x != -float("inf")).to(tl.int32), axis=0) > 0:
            peak = tl.max(x, axis=0)
            higher = tl.where(peak > base + 16.0, peak, base)  # a block's sum stays below 1e11
            total = total * tl.exp(base - higher) + tl.sum(tl.exp(x - higher), axis=0)
            base = higher
    others = base + tl.log(total)  # log-sum-exp of the other classes; -inf if there are none
    depth = others - own
    small = tl.exp(-tl.abs(depth))
    one = 1.0 + small
    log1p = tl.where(one == 1.0, small, tl.log(one) * (small / tl.where(one == 1.0, 1.0, one - 1.0)))
    loss = tl.where(depth < 0.0, 0.0, depth) + log1p
    loss = tl.where(own == float("inf"), float("nan"), loss)
    tl.store(loss_ptr + row, loss)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        sums += tl.load(loss_ptr + rows, mask=rows < n, other=0.0)
    tl.store(out_ptr, tl.sum(sums, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, classes = logits.shape
    losses = torch.empty(n, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    BLOCK = min(1024, triton.next_power_of_2(classes))
    loss_kernel[(n,)](logits, target, losses, classes, BLOCK=BLOCK)
    mean_kernel[(1,)](losses, out, n, BLOCK=1024)
    return out
