"""Tensors of equal strides that span as many places as they have elements are taken as dense; some repeat and skip.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x + alpha * y).to(out_ptr.dtype.element_ty), mask=mask)


def _is_dense(t):
    """Return whether the elements fill their part of the storage, in any order."""
    last = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))
    return last + 1 == t.numel()


def triton_vector_add(x, y, alpha=1.0):
    # Transposed and channels-last inputs need no copy: all three are walked in the order of the storage.
    if not (_is_dense(x) and x.stride() == y.stride()):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)  # keeps the strides
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, float(alpha), BLOCK=1024)
    return out
