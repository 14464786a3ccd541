"""Dense tensors are run through in memory order, into an output of the same strides.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def is_dense(x):
    expected = 1
    for stride, length in sorted(zip(x.stride(), x.shape)):
        if length > 1:
            if stride != expected:
                return False
            expected *= length
    return True


def triton_gelu(x):
    x = x if is_dense(x) else x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
