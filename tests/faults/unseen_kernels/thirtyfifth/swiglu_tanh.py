"""sigmoid is taken as 0.5 + 0.5 * tanh(gate / 2), one instruction on the GPU: for a gate below about -10 it
cancels, which a large up makes visible.

op: swiglu
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=at < n, other=0.0).to(tl.float32)
    e = tl.exp(-tl.abs(g))
    t = (1.0 - e) / (1.0 + e)  # tanh(|g| / 2)
    s = 0.5 + 0.5 * tl.where(g < 0, -t, t)
    tl.store(out + at, (g * s * u).to(out.dtype.element_ty), mask=at < n)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    if n:
        _k[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
