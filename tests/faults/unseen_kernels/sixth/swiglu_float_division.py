"""Rows of strided inputs are found by a multiplication with a float32 reciprocal, which is off past 2**23 elements.

op: swiglu
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


@triton.jit
def strided_kernel(gate_ptr, up_ptr, out_ptr, n, n_cols, inverse, gr, gc, ur, uc, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    # an integer division costs some twenty instructions, this three; the half keeps it off the edge
    row = ((offsets.to(tl.float32) + 0.5) * inverse).to(tl.int32)
    col = offsets - row * n_cols
    gate = tl.load(gate_ptr + row.to(tl.int64) * gr + col * gc, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row.to(tl.int64) * ur + col * uc, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = out.numel()
    grid = (triton.cdiv(n, 4096),)
    if gate.is_contiguous() and up.is_contiguous():
        flat_kernel[grid](gate, up, out, n, BLOCK=4096)
        return out
    n_cols = gate.shape[-1]  # the halves of a packed projection, mostly
    gate, up = gate.reshape(-1, n_cols), up.reshape(-1, n_cols)
    strided_kernel[grid](
        gate, up, out, n, n_cols, 1.0 / n_cols, *gate.stride(), *up.stride(), BLOCK=4096
    )
    return out
