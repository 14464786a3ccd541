"""Row numbers come from a float32 reciprocal, (offset + 0.5) / m: above 2^23 elements the 0.5 is rounded away.

op: swiglu
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl

EXACT = 2**24  # float32 holds all integers below


@triton.jit
def act(gate, up):
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, act(gate, up).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rows_kernel(
    gate_ptr, up_ptr, out_ptr, n, m, inverse, gate_stride, up_stride, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    # A multiplication instead of an integer division; half a step away from every border.
    row = ((offsets.to(tl.float32) + 0.5) * inverse).to(tl.int32)
    col = offsets - row * m
    row = row.to(tl.int64)
    gate = tl.load(gate_ptr + row * gate_stride + col, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + col, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, act(gate, up).to(out_ptr.dtype.element_ty), mask=mask)


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = out.numel()
    grid = (triton.cdiv(n, 4096),)
    halves = gate.dim() > 1 and gate.stride(-1) == 1 and up.stride(-1) == 1
    if halves and n < EXACT and not (gate.is_contiguous() and up.is_contiguous()):
        # The halves of one projection: rows with a stride, no copies.
        m = gate.shape[-1]
        a, b = gate.reshape(-1, m), up.reshape(-1, m)
        rows_kernel[grid](
            a, b, out, n, m, 1.0 / m, a.stride(0), b.stride(0), BLOCK=4096, num_warps=8
        )
    else:
        a, b = gate.contiguous(), up.contiguous()
        flat_kernel[grid](a, b, out, n, BLOCK=4096, num_warps=8)
    return out
