"""The normaliser is folded into the exponent, exp(x - (max + log(sum))): rounding max + log(sum) in float32
costs up to half a unit of a large maximum, so rows around 1e4 to 1e6 come out scaled.

op: softmax
status: failed
cause: value range
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, out, m, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, v)
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - safe) + tl.exp(v - safe)
        top = new
    high = tl.max(top, 0)
    total = tl.sum(total * tl.exp(top - high), 0)
    lse = high + tl.log(total)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out + row * m + cols, tl.exp(v - lse).to(out.dtype.element_ty), mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        _k[(x.numel() // m,)](x, out, m, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
