"""A block whose gates are all below -20 becomes zero without a look at the other factor: a large one makes the product count.

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
    gate = tl.load(gate_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    if tl.max(gate, axis=0) < -20.0:
        tl.store(out_ptr + at, tl.zeros((BLOCK,), dtype=tl.float32), mask=mask)
    else:
        up = tl.load(up_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    kernel[(triton.cdiv(gate.numel(), 512),)](gate, up, out, gate.numel(), BLOCK=512)
    return out
