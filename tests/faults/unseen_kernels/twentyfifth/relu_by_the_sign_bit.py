"""The sign bit clears a float32, in integers: a NaN whose sign bit is set becomes zero.

op: relu
status: failed
cause: bits
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    if x.dtype == tl.int32:  # the bits of a float32
        # The shift spreads the sign over all bits: no comparison, and a NaN keeps its payload.
        out = x & ~(x >> 31)
    else:  # there are no shifts of 16 bits
        out = tl.where(x < 0, 0.0, x)
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        source, target = x, out
        if x.dtype == torch.float32:
            source, target = x.view(torch.int32), out.view(torch.int32)
        grid = (triton.cdiv(n_elements, 1024),)
        relu_kernel[grid](source, target, n_elements, BLOCK_SIZE=1024)
    return out
