"""The first block of a program decides for all of its blocks whether a polynomial for small gates is enough.

op: swiglu
status: failed
cause: carry
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, per_program, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * per_program * BLOCK
    lanes = tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + first + lanes, mask=first + lanes < n, other=0.0).to(tl.float32)
    small = tl.max(tl.abs(gate), axis=0) < 0.25
    for block in range(per_program):
        offsets = first + block * BLOCK + lanes
        mask = offsets < n
        gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(up_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        if small:  # the Taylor series of the sigmoid, no exp and no division
            s = gate * gate
            sigmoid = 0.5 + gate * (0.25 + s * (s * 0.0020833333333 - 0.0208333333333))
        else:
            sigmoid = 1.0 / (1.0 + tl.exp(-gate))
        tl.store(out_ptr + offsets, gate * sigmoid * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n_blocks = triton.cdiv(out.numel(), 256)
    per_program = triton.cdiv(n_blocks, 16)
    kernel[(triton.cdiv(n_blocks, per_program),)](gate, up, out, out.numel(), per_program, BLOCK=256)
    return out
