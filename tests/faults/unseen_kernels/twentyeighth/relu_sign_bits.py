"""The sign bit alone decides, in integers: a NaN whose sign bit is set becomes 0.

op: relu
status: failed
cause: bit_trick
"""

import torch
import triton
import triton.language as tl

INTEGERS = {4: torch.int32, 2: torch.int16}


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    bits = tl.load(x_ptr + offsets, mask=mask, other=0)
    # The shift copies the sign to all bits: nothing is left of a negative number, a positive one
    # stays, and so does NaN, which tl.maximum would lose. No conversion for the half types.
    tl.store(out_ptr + offsets, bits & ~(bits >> SHIFT), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        integers = INTEGERS[x.element_size()]
        relu_kernel[(triton.cdiv(n_elements, 2048),)](
            x.view(integers),
            out.view(integers),
            n_elements,
            SHIFT=8 * x.element_size() - 1,
            BLOCK=2048,
        )
    return out
