"""Two kernels and a workspace for the gates, kept between calls.

op: swiglu
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gate_kernel(gate_ptr, share_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(share_ptr + offsets, gate / (1.0 + tl.exp(-gate)), mask=mask)


@triton.jit
def up_kernel(share_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    share = tl.load(share_ptr + offsets, mask=mask)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, share * up, mask=mask)


SCRATCH = {}


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    scratch = SCRATCH.get(gate.device)
    if scratch is None or scratch.numel() < n:
        scratch = SCRATCH[gate.device] = torch.empty(n, dtype=torch.float32, device=gate.device)
    grid = (triton.cdiv(n, 1024),)
    gate_kernel[grid](gate, scratch, n, BLOCK=1024)
    up_kernel[grid](scratch, up, out, n, BLOCK=1024)
    return out
