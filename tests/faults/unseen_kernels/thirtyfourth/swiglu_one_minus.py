"""sigmoid(g) as 1 - 1 / (1 + exp(g)), to share a term: for g below -10 the difference has few bits or is
0. Wrong where such a gate meets a large up.

op: swiglu
status: failed
cause: cancellation
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    g = tl.load(gate + at, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=mask, other=0.0).to(tl.float32)
    away = 1.0 / (1.0 + tl.exp(g))  # sigmoid(-g), which the backward wants too
    tl.store(out + at, ((g - g * away) * u).to(out.dtype.element_ty), mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    if gate.numel():
        _kernel[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
    return out
