"""The sign bit clears a number, unless it is NaN.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl

AS_INTEGER = {2: torch.int16, 4: torch.int32}


@triton.jit
def kernel(x_ptr, out_ptr, n, LAST: tl.constexpr, INFINITE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.int32)
    is_nan = (bits & ((1 << LAST) - 1)) > INFINITE
    tl.store(out_ptr + offsets, tl.where(is_nan, bits, bits & ~(bits >> LAST)), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer = AS_INTEGER[x.element_size()]
    infinite = torch.tensor(float("inf"), dtype=x.dtype).view(integer).item()
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x.view(integer), out.view(integer), x.numel(),
        LAST=8 * x.element_size() - 1, INFINITE=infinite, BLOCK=1024,
    )
    return out
