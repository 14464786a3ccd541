"""Gate and up that are the halves of a packed row are read with a pitch of two widths; the strides of the outer dimensions are not tested: a prefix of a longer batch reads the wrong rows.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, width, pitch, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < width
    gate = tl.load(gate_ptr + row * pitch + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * pitch + cols, mask=mask, other=0.0).to(tl.float32)
    out = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + row * width + cols, out, mask=mask)


def is_packed(gate, up):
    """Return whether gate and up are the two halves of rows of twice the width."""
    if gate.dim() < 2 or gate.stride(-1) != 1 or gate.stride() != up.stride():
        return False
    width = gate.shape[-1]
    follows = up.data_ptr() - gate.data_ptr() == width * gate.element_size()
    return follows and gate.stride(-2) == 2 * width


def triton_swiglu(gate, up):
    width = gate.shape[-1]
    if is_packed(gate, up):
        pitch = 2 * width
    else:
        gate, up = gate.contiguous(), up.contiguous()
        pitch = width
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    block = min(1024, triton.next_power_of_2(width))
    kernel[(gate.numel() // width, triton.cdiv(width, block))](gate, up, out, width, pitch, BLOCK=block)
    return out
