"""The sign bit alone decides what becomes zero, so a NaN whose sign bit is set becomes 0 instead of NaN.

op: relu
status: failed
cause: nan-sign
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_bits(x_ptr, out_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(x_ptr + offsets, mask=mask, other=0)
    # An arithmetic shift spreads the sign over the word: ~(-1) clears negatives, ~0 keeps the rest.
    tl.store(out_ptr + offsets, bits & ~(bits >> SHIFT), mask=mask)


def triton_relu(x):
    """Compare and convert nothing: a NaN is a bit pattern like any other and passes."""
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    integer = torch.int32 if x.element_size() == 4 else torch.int16
    block = 1024 if n < 1 << 20 else 4096
    grid = (triton.cdiv(n, block),)
    relu_bits[grid](x.view(integer), out.view(integer), n, SHIFT=8 * x.element_size() - 1, BLOCK=block)
    return out
