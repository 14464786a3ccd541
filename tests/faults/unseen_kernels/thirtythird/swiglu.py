"""Sigmoid from exp2 of a number that is never positive, two tiles a program, one kernel for all dtypes.

op: swiglu
status: passed
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(gate, up, out, n, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * (2 * BLOCK)
    for tile in tl.static_range(2):
        i = first + tile * BLOCK + tl.arange(0, BLOCK)
        g = tl.load(gate + i, mask=i < n, other=0.0).to(tl.float32)
        u = tl.load(up + i, mask=i < n, other=0.0).to(tl.float32)
        e = tl.exp2(-tl.abs(g) * 1.4426950408889634)
        s = tl.where(g >= 0, g, g * e) / (1 + e)
        tl.store(out + i, (s * u).to(out.dtype.element_ty), mask=i < n)


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = out.numel()
    if n:
        _kernel[(triton.cdiv(n, 1024),)](gate.contiguous(), up.contiguous(), out, n, BLOCK=512)
    return out
