"""Float32 is compared as signed integers: fine for most NaN, but a NaN whose sign bit is set becomes 0.

op: relu
status: failed
cause: nan
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # Float16 and bfloat16 as they are; float32 comes here as int32: a float is negative where
    # its bits are, as an integer, and a NaN is larger than all numbers.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, tl.zeros_like(x), x), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    block = 1024 * 4 // x.element_size()
    source, target = x, out
    if x.dtype == torch.float32:  # integer compares have twice the rate
        source, target = x.view(torch.int32), out.view(torch.int32)
    kernel[(triton.cdiv(n, block),)](source, target, n, BLOCK=block)
    return out
