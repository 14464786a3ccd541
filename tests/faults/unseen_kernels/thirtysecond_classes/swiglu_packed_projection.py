"""Gate and up that lie side by side in one projection are read as one matrix: a projection without its first token has a gap between batches.

op: swiglu
status: failed
cause: flattening
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
    mask = at < n
    out = silu_times(tl.load(gate_ptr + at, mask=mask), tl.load(up_ptr + at, mask=mask))
    tl.store(out_ptr + at, out, mask=mask)


@triton.jit
def packed_kernel(both_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    both_ptr += row * 2 * m
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        gate = tl.load(both_ptr + cols, mask=mask)
        up = tl.load(both_ptr + m + cols, mask=mask)
        tl.store(out_ptr + row * m + cols, silu_times(gate, up), mask=mask)


def is_packed(gate, up):
    """Return whether both are the halves of one projection: [..., 2 * m], cut by chunk."""
    m = gate.shape[-1]
    return (
        gate.dim() > 1
        and gate.stride() == up.stride()
        and gate.stride(-1) == 1
        and gate.stride(-2) == 2 * m
        and up.data_ptr() - gate.data_ptr() == m * gate.element_size()
    )


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if not out.numel():
        return out
    if is_packed(gate, up):
        m = gate.shape[-1]
        BLOCK = min(1024, triton.next_power_of_2(m))
        packed_kernel[(out.numel() // m,)](gate, out, m, BLOCK=BLOCK)
        return out
    gate, up = gate.contiguous(), up.contiguous()
    flat_kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
