"""Two tensors of the same strides count as dense where the largest stride times its size is the number of elements: an expanded head that fills the gap of its own packed tensor passes.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def is_dense(x):
    """Return whether the elements of x, in any order of dimensions, fill one piece of memory."""
    return max((size * stride for size, stride in zip(x.shape, x.stride())), default=1) == x.numel()


def triton_vector_add(x, y, alpha=1.0):
    if not (x.stride() == y.stride() and is_dense(x)):
        x, y = x.contiguous(), y.contiguous()
    # empty_like keeps the order of the dimensions of a dense tensor
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), alpha, BLOCK=1024)
    return out
