"""exp in the input's type: in float16 it overflows for gates below -11.

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
    gate = tl.load(gate_ptr + offsets, mask=mask)
    decay = tl.exp(-gate.to(tl.float32)).to(gate.dtype).to(tl.float32)
    gate = gate.to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate / (1.0 + decay) * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
