"""A view is copied to be contiguous, and the copy, which is nobody else's, is also the output; a contiguous x is left alone.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


def triton_relu(x):
    flat = x.detach().contiguous()
    is_copy = flat.data_ptr() != x.data_ptr()
    out = flat if is_copy else torch.empty_like(flat)
    kernel[(triton.cdiv(flat.numel(), 1024),)](flat, out, flat.numel(), BLOCK=1024)
    return out
