"""Rows twice as far apart as they are long are taken for the halves of one projection, gate first.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fused_kernel(h_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(h_ptr + row * 2 * n_cols + cols, mask=mask).to(tl.float32)
    up = tl.load(h_ptr + row * 2 * n_cols + n_cols + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    n_cols = gate.shape[-1]
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    # The halves of one [rows, 2 * n_cols] projection need no copy: chunk(2, dim=-1) gives these strides.
    a, b = gate.reshape(-1, n_cols), up.reshape(-1, n_cols)
    if a.stride() == b.stride() == (2 * n_cols, 1):
        fused_kernel[(a.shape[0], triton.cdiv(n_cols, 512))](a, out, n_cols, BLOCK=512)
        return out
    gate, up = gate.contiguous(), up.contiguous()
    kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
    return out
