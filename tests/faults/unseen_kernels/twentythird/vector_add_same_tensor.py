"""If x and y are the same tensor, x is read once and multiplied by 1 + alpha: of an infinite x less a part of itself that makes infinity, not NaN.

op: vector_add
status: failed
cause: algebra
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + places, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, x + alpha * y, mask=mask)


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, x * factor, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    # x + alpha * x is (1 + alpha) * x: two thirds of the bytes.
    same = x.data_ptr() == y.data_ptr() and x.stride() == y.stride()
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if not n:
        return out
    if same:
        scale_kernel[grid](x, out, n, 1.0 + float(alpha), BLOCK=1024)
    else:
        add_kernel[grid](x, y.contiguous(), out, n, float(alpha), BLOCK=1024)
    return out
