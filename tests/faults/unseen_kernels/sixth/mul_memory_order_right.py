"""Nothing wrong: permuted inputs are multiplied in the order of memory, but only of equal strides and without gaps.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def has_no_gaps(x):
    """Return whether the elements fill a stretch of memory, each once, in any order."""
    expected = 1
    for stride, size in sorted(zip(x.stride(), x.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def triton_vector_mul(x, y):
    if x.numel() == 0:
        return torch.empty_like(x)
    if x.stride() != y.stride() or not has_no_gaps(x):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)  # of the same strides
    kernel[(triton.cdiv(out.numel(), 1024),)](x, y, out, out.numel(), BLOCK=1024)
    return out
