"""Two dense tensors with the same strides, contiguous or not, are multiplied in the order of their storage, and the result gets these strides.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def is_dense(x):
    """Return whether each place of x's piece of storage has exactly one element."""
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(x.stride(), x.shape) if size > 1):
        if step != expected:
            return False
        expected *= size
    return True


def triton_vector_mul(x, y):
    if not (x.stride() == y.stride() and is_dense(x)):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out
