"""The output gets the strides of the input, as empty_like gives them, but is written row after row.

op: relu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, out_ptr, n, n1, n2, n3, s0, s1, s2, s3, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    i3 = offsets % n3
    i2 = offsets // n3 % n2
    i1 = offsets // n3 // n2 % n1
    i0 = offsets // n3 // n2 // n1
    x = tl.load(x_ptr + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    four = x if x.dim() <= 4 else x.flatten(0, -4)
    four = four[(None,) * (4 - four.dim())]
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](
        four, out, x.numel(), *four.shape[1:], *four.stride(), BLOCK=1024
    )
    return out
