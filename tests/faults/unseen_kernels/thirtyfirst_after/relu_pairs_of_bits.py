"""Right: large tensors of a half type are taken as pairs in an int32, and clipped by their sign bits.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl

LARGE = 2**17


@triton.jit
def value_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


@triton.jit
def pair_kernel(x_ptr, out_ptr, n_pairs, INFINITY: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    pair = tl.load(x_ptr + at, mask=at < n_pairs, other=0)
    low = pair & 0xFFFF
    high = (pair >> 16) & 0xFFFF
    # A negative number is dropped; what is above infinity is a NaN, with either sign.
    low = tl.where((low > 0x7FFF) & ((low & 0x7FFF) <= INFINITY), 0, low)
    high = tl.where((high > 0x7FFF) & ((high & 0x7FFF) <= INFINITY), 0, high)
    tl.store(out_ptr + at, low | (high << 16), mask=at < n_pairs)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if not n:
        return out
    if x.element_size() == 2 and n >= LARGE and n % 2 == 0 and x.data_ptr() % 16 == 0:
        pairs, out_pairs = x.view(-1).view(torch.int32), out.view(-1).view(torch.int32)
        INFINITY = 0x7C00 if x.dtype == torch.float16 else 0x7F80
        grid = (triton.cdiv(n // 2, 1024),)
        pair_kernel[grid](pairs, out_pairs, n // 2, INFINITY=INFINITY, BLOCK=1024)
    else:
        value_kernel[(triton.cdiv(n, 512),)](x, out, n, BLOCK=512)
    return out
