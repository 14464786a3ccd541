"""At most 512 programs, each of which takes every 512th block.

op: swiglu
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    for start in range(first, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
        up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = out.numel()
    kernel[(min(512, triton.cdiv(n, 1024)),)](gate, up, out, n, BLOCK=1024)
    return out
