"""Outputs come from a ring of four buffers a shape: the fifth call writes over the result of the first.

op: swiglu
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


DEPTH = 4
_rings = {}


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    gate = tl.load(gate_ptr + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def next_output(shape, dtype, device):
    """Return the buffer that was handed out longest ago: the allocator is not asked again."""
    key = (tuple(shape), dtype, device)
    ring = _rings.setdefault(key, [])
    if len(ring) < DEPTH:
        ring.append(torch.empty(shape, dtype=dtype, device=device))
        return ring[-1]
    ring.append(ring.pop(0))
    return ring[-1]


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = next_output(gate.shape, gate.dtype, gate.device)
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
