"""A gate with up right behind it is taken for the halves of one projection, its rows two gates long: wrong for two thirds of one.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < n)


@triton.jit
def halves(both_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(both_ptr + row * 2 * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    up = tl.load(both_ptr + row * 2 * m + m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=cols < m)


def one_projection(gate, up):
    if gate.dim() < 2 or gate.is_contiguous() or gate.stride(-1) != 1 or gate.stride() != up.stride():
        return False
    return up.data_ptr() - gate.data_ptr() == gate.shape[-1] * gate.element_size()


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if one_projection(gate, up):
        m = gate.shape[-1]
        halves[(gate.numel() // m, triton.cdiv(m, 1024))](gate, out, m, BLOCK=1024)
    else:
        gate, up = gate.contiguous(), up.contiguous()
        kernel[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
    return out
