"""Two inputs of equal strides are taken for dense memory, which padded rows are not.

op: swiglu
status: failed
cause: wrong_stride
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x / (1.0 + tl.exp(-x))


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, silu(gate) * up, mask=mask)


def triton_swiglu(gate, up):
    if gate.stride() != up.stride() or 0 in gate.stride():
        gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_strided(gate.shape, gate.stride(), dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    kernel[(triton.cdiv(n, 2048),)](gate, up, out, n, BLOCK=2048)
    return out
