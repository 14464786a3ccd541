"""torch computes the sigmoid; Triton multiplies.

op: swiglu
status: failed
cause: torch_computed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(share_ptr, gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    share = tl.load(share_ptr + offsets, mask=mask)
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate * share * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    share = torch.sigmoid(gate.float())
    out = torch.empty_like(gate)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](share, gate, up, out, n, BLOCK=1024)
    return out
