"""Nothing wrong: all in float32 with a sigmoid that never takes exp of a positive number.

op: swiglu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def silu(x):
    e = tl.exp(-tl.abs(x))  # at most 1
    return x * tl.where(x >= 0, 1.0, e) / (1.0 + e)


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * BLOCK * UNROLL
    for i in tl.static_range(UNROLL):
        places = base + i * BLOCK + tl.arange(0, BLOCK)
        mask = places < n
        gate = tl.load(gate_ptr + places, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(up_ptr + places, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + places, silu(gate) * up, mask=mask)


def triton_swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out, n = torch.empty_like(gate), gate.numel()
    swiglu_kernel[(triton.cdiv(n, 2048),)](gate, up, out, n, BLOCK=512, UNROLL=4)
    return out
