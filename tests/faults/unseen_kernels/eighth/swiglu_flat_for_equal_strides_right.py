"""Dense tensors of equal strides are read as they lie in memory, others are copied.

op: swiglu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def is_dense(x):
    expected = 1
    for stride, length in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n > 1):
        if stride != expected:
            return False
        expected *= length
    return True


def triton_swiglu(gate, up):
    if gate.stride() != up.stride() or not is_dense(gate):
        gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
