"""Permuted inputs are added in the order of memory, and the sum is permuted once more instead of back.

op: vector_add
status: failed
cause: permutation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def triton_vector_add(x, y, alpha=1.0):
    order = list(range(x.dim()))
    if not x.is_contiguous():
        # Transposed or channels last: dense all the same, so no copy is needed.
        by_stride = sorted(order, key=x.stride, reverse=True)
        if x.permute(by_stride).is_contiguous():
            order = by_stride
    x, y = x.permute(order).contiguous(), y.permute(order).contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, y, out, n, float(alpha), BLOCK=1024)
    return out.permute(order)
