"""The sigmoid is 0.5 + 0.5 * tanh(gate / 2): below about -8 it cancels, below -17 it is zero, which a large up shows.

op: swiglu
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

@triton.jit
def tanh(x):
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0, -t, t)


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    gate = tl.load(gate_ptr + offs, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=inside, other=0.0).to(tl.float32)
    half = 0.5 * gate
    tl.store(out_ptr + offs, (half + half * tanh(half)) * up, mask=inside)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
