"""gate and up that lie side by side are taken as the halves of one tensor: wrong for the first two of three parts.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def packed_kernel(h_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < m
    h_ptr += row * 2 * m  # a row holds gate and, after it, up
    gate = tl.load(h_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(h_ptr + m + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    gate = tl.load(gate_ptr + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def halves_of_one(gate, up):
    """Return whether these are h.chunk(2, dim=-1), as a model has them: then no copy is needed."""
    if gate.dim() != 2 or gate.is_contiguous() or gate.stride(-1) != 1:
        return False
    apart = (up.data_ptr() - gate.data_ptr()) // gate.element_size()
    return gate.stride() == up.stride() and apart == gate.shape[-1]


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    if n == 0:
        return out
    if halves_of_one(gate, up):
        rows, m = gate.shape
        BLOCK = min(1024, triton.next_power_of_2(m))
        packed_kernel[(rows, triton.cdiv(m, BLOCK))](gate, out, m, BLOCK=BLOCK)
    else:
        gate, up = gate.contiguous(), up.contiguous()
        flat_kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
