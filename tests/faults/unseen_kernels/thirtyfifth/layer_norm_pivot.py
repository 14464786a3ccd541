"""One pass over the row with sums shifted by a pivot, the first element of a group of four rows: right for
any mean that the rows share, but the variance cancels in a row whose mean is far from the group's first row.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, weight, bias, out, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    pivot = tl.load(x + row // 4 * 4 * m).to(tl.float32)
    s1 = tl.zeros((BLOCK,), tl.float32)
    s2 = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        d = tl.where(cols < m, v - pivot, 0.0)
        s1 += d
        s2 += d * d
    shift = tl.sum(s1, 0) / m
    var = tl.sum(s2, 0) / m - shift * shift
    var = tl.where(var < 0.0, 0.0, var)
    rstd = 1.0 / tl.sqrt(var + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        a = tl.load(weight + cols, mask=cols < m, other=0.0).to(tl.float32)
        b = tl.load(bias + cols, mask=cols < m, other=0.0).to(tl.float32)
        y = ((v - pivot) - shift) * rstd * a + b
        tl.store(out + row * m + cols, y.to(out.dtype.element_ty), mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        _k[(x.numel() // m,)](x, weight, bias, out, m, eps, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
