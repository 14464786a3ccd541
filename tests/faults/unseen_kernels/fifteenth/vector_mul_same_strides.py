"""Equal strides of both are taken as leave to walk along the memory: two slices of wider tensors have them too, with gaps.

op: vector_mul
status: failed
cause: layout
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


def triton_vector_mul(x, y):
    if x.stride() != y.stride():
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)  # with the strides of x
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out
