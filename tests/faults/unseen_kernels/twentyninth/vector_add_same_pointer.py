"""Only x is read where x and y start at the same address: wrong for a matrix and its transpose, or any two views from one place.

op: vector_add
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, alpha, ONE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    if ONE:
        y = x
    else:
        y = tl.load(y_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    one = x.data_ptr() == y.data_ptr()  # x + alpha * x: a third of the traffic saved
    x = x.contiguous()
    y = x if one else y.contiguous()
    out = torch.empty_like(x)
    size = x.numel()
    if size:
        add_kernel[(triton.cdiv(size, 1024),)](x, y, out, size, float(alpha), ONE=one, BLOCK=1024)
    return out
