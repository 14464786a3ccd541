"""Two tensors at the same address are taken for one and squared, though one may be the transpose of the other.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SQUARE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if SQUARE:
        y = x
    else:
        y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def triton_vector_mul(x, y):
    square = x.data_ptr() == y.data_ptr() and x.shape == y.shape
    a = x.contiguous()
    b = a if square else y.contiguous()
    out = torch.empty_like(a)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](a, b, out, n, SQUARE=square, BLOCK=1024)
    return out
