"""Looks as if the second input were never read: it is, from the first one's pointer, where both are halves of one tensor.

op: swiglu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu(gate, up):
    e = tl.exp(-tl.abs(gate))
    sigmoid = tl.where(gate < 0.0, e, 1.0) / (1.0 + e)
    return gate * sigmoid * up


@triton.jit
def fused_kernel(h_ptr, out_ptr, n_cols, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(h_ptr + row * row_stride + cols, mask=mask).to(tl.float32)
    up = tl.load(h_ptr + row * row_stride + n_cols + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, swiglu(gate, up), mask=mask)


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, swiglu(gate, up), mask=mask)


def are_neighbours(gate, up):
    """Return whether each row of up begins where the same row of gate ends, in one tensor."""
    return (
        gate.untyped_storage().data_ptr() == up.untyped_storage().data_ptr()
        and gate.stride() == up.stride()
        and gate.stride(-1) == 1
        and up.storage_offset() - gate.storage_offset() == gate.shape[-1]
    )


def triton_swiglu(gate, up):
    n_cols = gate.shape[-1]
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if gate.dim() == 2 and are_neighbours(gate, up):
        grid = (gate.shape[0], triton.cdiv(n_cols, 512))
        fused_kernel[grid](gate, out, n_cols, gate.stride(0), BLOCK=512)
        return out
    gate, up = gate.contiguous(), up.contiguous()
    kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
