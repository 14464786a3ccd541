"""Right: gate and up that interleave in one dense buffer, in either order, are read as pairs in one wide load and split; all else is copied first.

op: swiglu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def activate(gate, up):
    gate, up = gate.to(tl.float32), up.to(tl.float32)
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def pairs_kernel(base_ptr, out_ptr, n, GATE_FIRST: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * BLOCK
    places = block * 2 + tl.arange(0, 2 * BLOCK)
    both = tl.load(base_ptr + places, mask=places < 2 * n)
    first, second = tl.split(tl.reshape(both, (BLOCK, 2)))
    at = block + tl.arange(0, BLOCK)
    if GATE_FIRST:
        result = activate(first, second)
    else:
        result = activate(second, first)
    tl.store(out_ptr + at, result, mask=at < n)


@triton.jit
def kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n)
    up = tl.load(up_ptr + at, mask=at < n)
    tl.store(out_ptr + at, activate(gate, up), mask=at < n)


def triton_swiglu(gate, up):
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    n = out.numel()
    if n == 0:
        return out
    distance = up.data_ptr() - gate.data_ptr()
    paired = abs(distance) == gate.element_size() and gate.dtype == up.dtype
    dense = 2
    for size, *strides in zip(reversed(gate.shape), reversed(gate.stride()), reversed(up.stride())):
        paired = paired and (size == 1 or strides == [dense, dense])
        dense *= size
    grid = (triton.cdiv(n, 512),)
    if paired:
        pairs_kernel[grid](gate if distance > 0 else up, out, n, GATE_FIRST=distance > 0, BLOCK=512)
    else:
        kernel[grid](gate.contiguous(), up.contiguous(), out, n, BLOCK=512)
    return out
