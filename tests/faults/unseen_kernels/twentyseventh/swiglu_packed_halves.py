"""Two halves of one tensor are read without a copy, the gate from the first: wrong where the gate is the second.

op: swiglu
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_times(gate, up):
    gate, up = gate.to(tl.float32), up.to(tl.float32)
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n_elements - start
    gate = tl.load(gate_ptr + start + lanes, mask=mask)
    up = tl.load(up_ptr + start + lanes, mask=mask)
    tl.store(out_ptr + start + lanes, silu_times(gate, up), mask=mask)


@triton.jit
def packed_kernel(both_ptr, out_ptr, m, BLOCK: tl.constexpr):
    """A row of the projection holds m gates and, behind them, m ups."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < m
    gate = tl.load(both_ptr + row * 2 * m + cols, mask=mask)
    up = tl.load(both_ptr + row * 2 * m + m + cols, mask=mask)
    tl.store(out_ptr + row * m + cols, silu_times(gate, up), mask=mask)


def packed_from(gate, up):
    """Return the tensor that gate and up are the halves of, as chunk(2, -1) leaves them; or None."""
    both = gate._base
    if both is None or both is not up._base or not both.is_contiguous() or not both.dim():
        return None
    m = gate.shape[-1]
    halves = both.shape == (*gate.shape[:-1], 2 * m)
    return both if halves and gate.stride() == up.stride() == both.stride() else None


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n_elements = out.numel()
    if not n_elements:
        return out
    both = packed_from(gate, up) if gate.dim() else None
    if both is not None:
        m = gate.shape[-1]
        block = min(1024, triton.next_power_of_2(m))
        packed_kernel[(n_elements // m, triton.cdiv(m, block))](both, out, m, BLOCK=block)
        return out
    gate, up = gate.contiguous(), up.contiguous()
    flat_kernel[(triton.cdiv(n_elements, 1024),)](gate, up, out, n_elements, BLOCK=1024)
    return out
