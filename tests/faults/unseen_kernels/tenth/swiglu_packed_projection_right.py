"""Halves of one packed projection are read from it, if gate is the first half and up the second.

op: swiglu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * row_stride + cols, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * row_stride + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, gate * tl.sigmoid(gate) * up, mask=mask)


def is_packed(gate, up):
    packed = gate._base
    return (
        packed is not None
        and packed is up._base
        and packed.is_contiguous()
        and packed.shape == (*gate.shape[:-1], 2 * gate.shape[-1])
        and gate.stride() == up.stride() == packed.stride()
        and gate.data_ptr() == packed.data_ptr()
        and up.storage_offset() == packed.storage_offset() + gate.shape[-1]
    )


def triton_swiglu(gate, up):
    n_cols = gate.shape[-1]
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if is_packed(gate, up):
        packed = gate._base.view(-1)
        first, second, row_stride = packed, packed[n_cols:], 2 * n_cols
    else:
        first, second, row_stride = gate.contiguous(), up.contiguous(), n_cols
    grid = (out.numel() // n_cols, triton.cdiv(n_cols, 1024))
    kernel[grid](first, second, out, row_stride, n_cols, BLOCK=1024)
    return out
