"""The sigmoid is that of the other input.

op: swiglu
status: wrong_values
from: swiglu_right
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    share = 1.0 / (1.0 + tl.exp(-up))
    tl.store(out_ptr + offsets, gate * share * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
