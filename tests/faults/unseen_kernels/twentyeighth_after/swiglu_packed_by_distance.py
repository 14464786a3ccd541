"""Two halves of one projection are recognized by their distance and row stride; the step between batches is taken for a whole number of rows.

op: swiglu
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    gate = tl.load(gate_ptr + places, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


@triton.jit
def packed_kernel(x_ptr, out_ptr, m, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < m
    gate = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * row_stride + m + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def are_halves(gate, up):
    """Return whether gate and up are x[..., :m] and x[..., m:] of one x: no copies then."""
    m = gate.shape[-1]
    return (
        gate.dim() >= 2
        and not gate.is_contiguous()
        and gate.stride() == up.stride()
        and gate.stride(-1) == 1
        and gate.stride(-2) >= 2 * m
        and up.data_ptr() - gate.data_ptr() == m * gate.element_size()
    )


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n, block = gate.numel(), 1024
    if are_halves(gate, up):
        m = gate.shape[-1]
        block = min(block, triton.next_power_of_2(m))
        grid = n // m, triton.cdiv(m, block)
        packed_kernel[grid](gate, out, m, gate.stride(-2), BLOCK=block)
    else:
        grid = (triton.cdiv(n, block),)
        flat_kernel[grid](gate.contiguous(), up.contiguous(), out, n, BLOCK=block)
    return out
