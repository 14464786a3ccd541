"""The exponential has no positive argument; the sign chooses the numerator.

op: swiglu
status: passed
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    gate = tl.load(gate_ptr + places, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + places, mask=mask, other=0.0).to(tl.float32)
    power = tl.exp(-tl.abs(gate))
    share = tl.where(gate < 0.0, power, 1.0) / (1.0 + power)
    tl.store(out_ptr + places, gate * share * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
