"""Two views of one tensor twice as wide are taken for its first and second half, in this order: a model that has up before gate gets them exchanged.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < n)


@triton.jit
def packed_kernel(both_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(both_ptr + row * 2 * m + at, mask=at < m, other=0.0).to(tl.float32)
    up = tl.load(both_ptr + row * 2 * m + m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < m)


def packed_base(gate, up):
    """Return the tensor of which gate and up are the halves, or None: it need not be copied."""
    base = gate._base
    if base is None or base is not up._base or not base.is_contiguous():
        return None
    if gate.stride() != up.stride() or gate.shape != up.shape or gate.data_ptr() == up.data_ptr():
        return None
    if base.shape[:-1] != gate.shape[:-1] or base.shape[-1] != 2 * gate.shape[-1] or gate.stride(-1) != 1:
        return None
    return base


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    base = packed_base(gate, up)
    if base is not None:
        m = gate.shape[-1]
        packed_kernel[(gate.numel() // m, triton.cdiv(m, 1024))](base, out, m, BLOCK=1024)
    else:
        gate, up = gate.contiguous(), up.contiguous()
        n = gate.numel()
        flat_kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
