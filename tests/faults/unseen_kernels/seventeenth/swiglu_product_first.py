"""The product of gate and up is rounded to their type before the sigmoid: in float16 it is infinite over 65504, and infinity times a sigmoid of zero is NaN.

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
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0)
    # The product in the input type, as the packed half instructions make it.
    product = (gate.to(tl.float32) * up.to(tl.float32)).to(gate.dtype).to(tl.float32)
    sigmoid = 1.0 / (1.0 + tl.exp(-gate.to(tl.float32)))
    tl.store(out_ptr + at, product * sigmoid, mask=at < n)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    kernel[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
    return out
