"""Each program does three blocks: 1536 elements, no power of two.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    start = tl.program_id(0) * BLOCK * TIMES
    for i in tl.static_range(TIMES):
        offsets = start + i * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x * y, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 3 * 512),)](x, y, out, out.numel(), BLOCK=512, TIMES=3)
    return out
