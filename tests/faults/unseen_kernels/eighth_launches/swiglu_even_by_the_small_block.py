"""From 2**20 elements on the block is 4,096, but whether the last one is whole is decided for 1,024.

op: swiglu
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        gate = tl.load(gate_ptr + offsets).to(tl.float32)
        up = tl.load(up_ptr + offsets).to(tl.float32)
        tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up)
    else:
        mask = offsets < n
        gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(up_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


LARGE = 2**20


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    even = n % 1024 == 0
    BLOCK = 4096 if n >= LARGE else 1024
    programs = n // BLOCK if even else triton.cdiv(n, BLOCK)
    kernel[(programs,)](gate, up, out, n, EVEN=even, BLOCK=BLOCK)
    return out
