"""gate * up is taken first, in the inputs' type, where float16 overflows though sigmoid would make it small.

op: swiglu
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0)
    up = tl.load(up_ptr + offsets, mask=mask, other=0.0)
    product = gate * up  # a packed half2 multiplication, and up's registers are free
    sigmoid = 1.0 / (1.0 + tl.exp2(gate.to(tl.float32) * -1.4426950408889634))
    tl.store(out_ptr + offsets, product.to(tl.float32) * sigmoid, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
