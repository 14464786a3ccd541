"""Neighbouring gate and up are taken for the halves of rows of 2 * d, but the rows they were cut from may be longer.

op: swiglu
status: failed
cause: packed_layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_times(gate, up):
    gate = gate.to(tl.float32)
    return gate / (1.0 + tl.exp(-gate)) * up.to(tl.float32)


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, silu_times(gate, up), mask=at < n)


@triton.jit
def packed_kernel(both_ptr, out_ptr, d, blocks, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    cols = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    both_ptr += row * 2 * d
    gate = tl.load(both_ptr + cols, mask=cols < d, other=0.0)
    up = tl.load(both_ptr + d + cols, mask=cols < d, other=0.0)
    tl.store(out_ptr + row * d + cols, silu_times(gate, up), mask=cols < d)


def is_packed(gate, up):
    """Return whether gate and up come from one projection: hidden.chunk(2, dim=-1)."""
    if gate.dim() < 2 or gate.stride() != up.stride() or gate.stride(-1) != 1 or gate.dtype != up.dtype:
        return False
    return up.data_ptr() - gate.data_ptr() == gate.shape[-1] * gate.element_size()


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    if not n:
        return out
    if not gate.is_contiguous() and is_packed(gate, up):
        d = gate.shape[-1]  # no copy of either half
        BLOCK = min(1024, triton.next_power_of_2(d))
        blocks = triton.cdiv(d, BLOCK)
        packed_kernel[(n // d * blocks,)](gate, out, d, blocks, BLOCK=BLOCK)
        return out
    flat_kernel[(triton.cdiv(n, 1024),)](gate.contiguous(), up.contiguous(), out, n, BLOCK=1024)
    return out
