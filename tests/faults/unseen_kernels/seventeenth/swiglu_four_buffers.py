"""The output is one of four buffers that take turns for a shape: the fifth call overwrites the result of the first.

op: swiglu
status: failed
cause: state
"""

import itertools

import torch
import triton
import triton.language as tl


_rings = {}


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < n)


def next_buffer(like):
    """Return a buffer that is not in use: four are enough for the layers in flight."""
    key = (tuple(like.shape), like.dtype, like.device)
    if key not in _rings:
        _rings[key] = itertools.cycle([torch.empty_like(like) for _ in range(4)])
    return next(_rings[key])


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = next_buffer(gate)
    kernel[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
    return out
