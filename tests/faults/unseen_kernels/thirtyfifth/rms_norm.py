"""A norm as BLAS takes it: squares of the row divided by a power of two near its largest, so that nothing overflows.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, weight, out, m, eps, ws, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        top = tl.maximum(top, tl.abs(v))
    high = tl.max(top, 0)
    unit = tl.where(high > 1e15, 1.0 / 1152921504606846976.0, 1.0)  # 2**-60
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32) * unit
        acc += v * v
    rstd = 1.0 / tl.sqrt(tl.sum(acc, 0) / m + eps * unit * unit)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * m + cols, mask=cols < m, other=0.0).to(tl.float32) * unit
        g = tl.load(weight + cols * ws, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out + row * m + cols, (v * rstd * g).to(out.dtype.element_ty), mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        _k[(x.numel() // m,)](x, weight, out, m, eps, weight.stride(0), BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
