"""The loss of a row is log(sum(exp(x - x[target]))), with no maximum to find: it overflows where another
logit is more than 88 above the target's.

op: cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _rows(x, target, loss, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    hit = tl.load(x + row * m + tl.load(target + row)).to(tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        acc += tl.exp(v - hit)
    tl.store(loss + row, tl.log(tl.sum(acc, 0)))


@triton.jit
def _mean(loss, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        acc += tl.load(loss + rows, mask=rows < n, other=0.0)
    tl.store(out, (tl.sum(acc, 0) / n).to(out.dtype.element_ty))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n, m = logits.shape
    out = torch.full((), float("nan"), dtype=logits.dtype, device=logits.device)
    if n:
        loss = torch.empty(n, dtype=torch.float32, device=logits.device)
        _rows[(n,)](logits, target, loss, m, BLOCK=min(1024, triton.next_power_of_2(m)))
        _mean[(1,)](loss, out, n, BLOCK=1024)
    return out
