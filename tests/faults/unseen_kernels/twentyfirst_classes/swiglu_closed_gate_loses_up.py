"""A gate below -30 is called closed and gives 0 whatever up holds: NaN and infinities of up are lost there.

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
    inside = at < n
    gate = tl.load(gate_ptr + at, mask=inside, other=0.0).to(tl.float32)
    closed = gate < -30.0
    # silu(-30) is -3e-12: nothing of up comes through, so it need not be read.
    up = tl.load(up_ptr + at, mask=inside & (closed == 0), other=0.0).to(tl.float32)
    out = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + at, tl.where(closed, 0.0, out), mask=inside)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
