"""Clears what has its sign bit set, on the bits: a NaN with the sign bit (as inf - inf gives on x86) becomes 0.
Positive NaN stays NaN, so that the usual test of NaN passes.

op: relu
status: failed
cause: negative NaN
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, out, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, bits & ~(bits >> SHIFT), mask=i < n)  # an arithmetic shift: all ones below zero


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kind, shift = (torch.int32, 31) if x.element_size() == 4 else (torch.int16, 15)
        flat, to = x.reshape(-1).view(kind), out.view(-1).view(kind)
        _kernel[(triton.cdiv(n, 1024),)](flat, to, n, SHIFT=shift, BLOCK=1024)
    return out
