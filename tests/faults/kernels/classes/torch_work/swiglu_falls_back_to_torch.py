"""Tensors that are not contiguous are left to torch.

op: swiglu
status: failed
cause: torch_computed
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + offsets, mask=offsets < n).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=offsets < n)


def triton_swiglu(gate, up):
    if not (gate.is_contiguous() and up.is_contiguous()):
        return torch.nn.functional.silu(gate) * up
    out = torch.empty_like(gate)
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
