"""Two arguments that are not contiguous are taken to have the same strides: a transposed one times a slice is wrong.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def strided(x_ptr, y_ptr, out_ptr, n, n1, n2, n3, s0, s1, s2, s3, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i3 = at % n3
    i2 = at // n3 % n2
    i1 = at // (n3 * n2) % n1
    i0 = at // (n3 * n2 * n1)
    source = i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3
    x = tl.load(x_ptr + source, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + source, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def triton_vector_mul(x, y):
    n = x.numel()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n, 1024),)
    if x.is_contiguous() != y.is_contiguous() or x.dim() > 4:
        x, y = x.contiguous(), y.contiguous()
    if x.is_contiguous():
        flat[grid](x, y, out, n, BLOCK=1024)
    else:
        # Both are views of the same kind: one index serves them, and nothing is copied.
        fill = 4 - x.dim()
        shape, strides = [1] * fill + list(x.shape), [0] * fill + list(x.stride())
        strided[grid](x, y, out, n, *shape[1:], *strides, BLOCK=1024)
    return out
