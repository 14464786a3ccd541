"""Rows that are contiguous in themselves are read at one stride, also across the batches of a cut three-dimensional input.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n_cols, gate_stride, up_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        gate = tl.load(gate_ptr + row * gate_stride + cols, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(up_ptr + row * up_stride + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, gate * tl.sigmoid(gate) * up, mask=mask)


def _rows(x):
    """Return the tensor to read and the distance of its rows; copy only what needs it."""
    if 2 <= x.dim() <= 3 and x.stride(-1) == 1 and x.stride(0) >= x.stride(-2):
        return x, x.stride(-2)
    return x.contiguous(), x.shape[-1]


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n_cols = gate.shape[-1]
    gate, gate_stride = _rows(gate)
    up, up_stride = _rows(up)
    kernel[(out.numel() // n_cols,)](gate, up, out, n_cols, gate_stride, up_stride, BLOCK=512)
    return out
