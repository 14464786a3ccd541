"""gate and up as the two halves of one tensor: the half that comes first in memory is taken as gate, also where it is up.

op: swiglu
status: failed
cause: layouts
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu(a, b):
    a = a.to(tl.float32)
    return a / (1.0 + tl.exp(-a)) * b.to(tl.float32)


@triton.jit
def halves_kernel(base_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    """One base pointer for both: fewer registers, and one stream of whole rows."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, col = i // m, i % m
    a = tl.load(base_ptr + row * 2 * m + col, mask=i < n, other=0.0)
    b = tl.load(base_ptr + row * 2 * m + m + col, mask=i < n, other=0.0)
    tl.store(out_ptr + i, swiglu(a, b), mask=i < n)


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(gate_ptr + i, mask=i < n, other=0.0)
    b = tl.load(up_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, swiglu(a, b), mask=i < n)


def fused_base(a, b):
    """Return the first half of a fused [..., 2 * m] whose halves a and b are; None where they are not."""
    if a.dim() < 2 or a.stride() != b.stride() or a.stride(-1) != 1:
        return None
    m = a.shape[-1]
    first, second = (a, b) if a.data_ptr() < b.data_ptr() else (b, a)
    if second.data_ptr() - first.data_ptr() != m * a.element_size() or a.stride(-2) != 2 * m:
        return None
    rows = all(a.stride(d) == a.shape[d + 1] * a.stride(d + 1) for d in range(a.dim() - 2))
    return first if rows else None


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = out.numel()
    if n == 0:
        return out
    grid = (triton.cdiv(n, 1024),)
    base = fused_base(gate, up)
    if base is not None:  # of one linear layer, chunked: read in place
        halves_kernel[grid](base, out, n, gate.shape[-1], BLOCK=1024)
    else:
        flat_kernel[grid](gate.contiguous(), up.contiguous(), out, n, BLOCK=1024)
    return out
