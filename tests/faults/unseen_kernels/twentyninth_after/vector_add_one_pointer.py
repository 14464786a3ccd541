"""x and y of one shape that begin at the same address are taken for the same tensor and read once: wrong for x and its transpose.

op: vector_add
status: failed
cause: alias
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, ONE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    y = x
    if not ONE:
        y = tl.load(y_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, (x + alpha * y).to(out_ptr.dtype.element_ty), mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    # x + alpha * x: a third of the traffic is saved
    one = x.data_ptr() == y.data_ptr() and x.shape == y.shape
    x = x.contiguous()
    y = x if one else y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, y, out, n, float(alpha), ONE=one, BLOCK=1024)
    return out
