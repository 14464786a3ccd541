"""Tensors that span as many elements as they have are taken for dense: a view that overlaps and leaves gaps may do so too.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + places, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, x * y, mask=mask)


def is_dense(x):
    """Return whether x fills its memory without gaps, in any order of its dimensions."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    return span == x.numel() and 0 not in x.stride()


def triton_vector_mul(x, y):
    # Both in one order, as a pair of transposed matrices: multiplied as they lie, without a copy.
    if x.stride() != y.stride() or not is_dense(x):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        mul_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out
