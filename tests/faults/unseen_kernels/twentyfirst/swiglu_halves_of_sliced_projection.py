"""The halves of a projection are read row after row: where a batch is only a slice of its positions, the rows of the next one lie elsewhere.

op: swiglu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < n)


@triton.jit
def halves(both_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    """A row of the projection holds the gate, then up."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        gate = tl.load(both_ptr + row * 2 * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        up = tl.load(both_ptr + row * 2 * cols + cols + col, mask=col < cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + col, gate / (1.0 + tl.exp(-gate)) * up, mask=col < cols)


def are_halves(gate, up):
    """Return whether the two are halves of the rows of one projection: no copies are needed."""
    cols = gate.shape[-1] if gate.dim() else 0
    return (
        gate.dim() >= 2
        and up.data_ptr() - gate.data_ptr() == cols * gate.element_size()
        and gate.stride() == up.stride()
        and gate.stride(-1) == 1
        and gate.stride(-2) == 2 * cols
    )


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = gate.numel()
    if are_halves(gate, up):
        cols = gate.shape[-1]
        halves[(n // cols,)](gate, out, cols, BLOCK=1024)
    else:
        flat[(triton.cdiv(n, 1024),)](gate.contiguous(), up.contiguous(), out, n, BLOCK=1024)
    return out
