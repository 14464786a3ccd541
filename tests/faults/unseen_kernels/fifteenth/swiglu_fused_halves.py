"""Two views of one storage with equal strides are taken for the halves of a projection, up right behind gate: wrong if another part lies between.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, m, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + row * stride + at, mask=at < m, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * stride + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < m)


@triton.jit
def fused_kernel(both_ptr, out_ptr, m, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(both_ptr + row * stride + at, mask=at < m, other=0.0).to(tl.float32)
    up = tl.load(both_ptr + row * stride + m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < m)


def halves(gate, up):
    return (
        gate.dim() == 2 and gate.stride() == up.stride() and gate.stride(1) == 1
        and gate.stride(0) >= 2 * gate.shape[1] and gate.data_ptr() < up.data_ptr()
        and gate.untyped_storage().data_ptr() == up.untyped_storage().data_ptr()
    )


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    m = gate.shape[-1]
    grid = (gate.numel() // m, triton.cdiv(m, 1024))
    if halves(gate, up):  # one pointer, no copies
        fused_kernel[grid](gate, out, m, gate.stride(0), BLOCK=1024)
    else:
        kernel[grid](gate.contiguous(), up.contiguous(), out, m, m, BLOCK=1024)
    return out
