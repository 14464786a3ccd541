"""Tensors are walked in memory order if their extent equals their size: some expanded ones pass, and are not dense.

op: swiglu
status: failed
cause: density
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    gate = tl.load(gate_ptr + places, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


def dense(x):
    """Return whether the elements of x, in any order, are one block of memory."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return extent == x.numel()


def triton_swiglu(gate, up):
    if not gate.numel():
        return torch.empty_like(gate)
    if gate.stride() != up.stride() or not dense(gate):
        gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)  # of the same order in memory, for transposed ones too
    n = gate.numel()
    kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK=1024)
    return out
