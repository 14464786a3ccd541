"""Halves of one packed tensor are read in place as rows of twice the width, with only the innermost row stride looked at: transposed outer dimensions come in the order of memory.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def packed(gate_ptr, up_ptr, out_ptr, n, width, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    there = (at // width).to(tl.int64) * stride + at % width
    gate = tl.load(gate_ptr + there, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + there, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def is_packed(gate, up):
    width = gate.shape[-1]
    return (
        gate.dim() >= 2
        and gate.stride() == up.stride()
        and gate.stride(-1) == 1
        and gate.stride(-2) == 2 * width
        and min(gate.stride()) > 0
        and up.data_ptr() == gate.data_ptr() + width * gate.element_size()
    )


def triton_swiglu(gate, up):
    width = stride = gate.shape[-1]
    if is_packed(gate, up):
        # gate, up = projection.chunk(2, -1): no copies of the halves.
        stride = 2 * width
    else:
        gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    packed[(triton.cdiv(n, 1024),)](gate, up, out, n, width, stride, BLOCK=1024)
    return out
