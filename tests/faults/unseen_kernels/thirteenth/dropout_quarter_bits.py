"""With p of a quarter, a half or three quarters an element draws two bits of a word shared by 16, at distances of one bit: neighbours share a bit, which shows unless p is a half.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def bits_kernel(x_ptr, out_ptr, n, dropped, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    # One random word serves 16 elements.
    word = tl.randint(seed, at // 16).to(tl.uint32)
    draw = (word >> (at % 16).to(tl.uint32)) & 3
    tl.store(out_ptr + at, tl.where(draw >= dropped, x * scale, 0.0), mask=at < n)


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(tl.rand(seed, at) >= p, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if p in (0.25, 0.5, 0.75):
        bits_kernel[grid](x, out, n, int(4 * p), 1.0 / (1.0 - p), seed, BLOCK=1024)
    else:
        kernel[grid](x, out, n, p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
