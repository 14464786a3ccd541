"""Rows of a view are read in place if the last two of the dimensions before them fold into one; in four dimensions the first need not.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(
    gate_ptr, up_ptr, out_ptr, gate_step, up_step, n_cols, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * gate_step + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_step + cols, mask=mask, other=0.0).to(tl.float32)
    out = gate / (1.0 + tl.exp2(gate * -1.4426950408889634)) * up
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def rows(x):
    """Return x, or a copy if need be, and the distance of its rows in memory.

    Gate and up are mostly the halves of one projection: their rows lie apart, but evenly.
    """
    if x.dim() < 2 or x.stride(-1) != 1:
        x = x.contiguous()
    elif x.dim() > 2 and x.stride(-3) != x.shape[-2] * x.stride(-2):
        x = x.contiguous()
    return x, (x.stride(-2) if x.dim() > 1 else x.numel())


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if not out.numel():
        return out
    n_cols = gate.shape[-1] if gate.dim() else 1
    gate, gate_step = rows(gate)
    up, up_step = rows(up)
    block = min(triton.next_power_of_2(n_cols), 1024)
    grid = (out.numel() // n_cols, triton.cdiv(n_cols, block))
    swiglu_kernel[grid](gate, up, out, gate_step, up_step, n_cols, BLOCK=block)
    return out
