"""A block whose gates are all below -9 is stored as zeros, and up is not read: wrong where up is some thousands there.

op: swiglu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    gate = tl.load(gate_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.zeros((BLOCK,), dtype=tl.float32)
    # Below -9 a gate lets through a thousandth at most: spare the block's loads of up.
    shut = tl.where(mask, gate < -9.0, True).to(tl.int32)
    if tl.min(shut, axis=0) == 0:
        up = tl.load(up_ptr + at, mask=mask, other=0.0).to(tl.float32)
        y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + at, y, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    kernel[(triton.cdiv(gate.numel(), 256),)](gate, up, out, gate.numel(), BLOCK=256)
    return out
