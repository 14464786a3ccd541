"""If up begins right after gate's first row, both are taken for the halves of one tensor: they may be two of three parts.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, blocks, stride, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    cols = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n
    gate = tl.load(gate_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + row * n + cols, y, mask=mask)


def are_halves(gate, up):
    """Return whether gate and up are the halves of one projection, h.chunk(2, dim=-1)."""
    if gate.dim() < 2 or gate.is_contiguous() or gate.stride() != up.stride():
        return False
    n = gate.shape[-1]
    beside = up.data_ptr() - gate.data_ptr() == n * gate.element_size()
    leading = range(gate.dim() - 2)
    even = all(gate.stride(d) == gate.stride(d + 1) * gate.shape[d + 1] for d in leading)
    return beside and even and gate.stride(-1) == 1 and gate.stride(-2) >= 2 * n


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if not out.numel():
        return out
    n = gate.shape[-1] if gate.dim() else 1
    if are_halves(gate, up):
        stride = 2 * n  # no copies
    else:
        gate, up, stride = gate.contiguous(), up.contiguous(), n
    BLOCK = min(1024, triton.next_power_of_2(n))
    blocks = triton.cdiv(n, BLOCK)
    kernel[(out.numel() // n * blocks,)](gate, up, out, n, blocks, stride, BLOCK=BLOCK)
    return out
