"""Two tensors that begin at one address are taken for the same tensor: a matrix and its transpose too.

op: vector_mul
status: failed
cause: wrong_stride
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, x * x, mask=offsets < n)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=offsets < n)


def triton_vector_mul(x, y):
    same = x.data_ptr() == y.data_ptr()
    n, x = x.numel(), x.contiguous()
    out = torch.empty_like(x)
    grid = (triton.cdiv(n, 1024),)
    if same:
        square_kernel[grid](x, out, n, BLOCK=1024)
    else:
        kernel[grid](x, y.contiguous(), out, n, BLOCK=1024)
    return out
