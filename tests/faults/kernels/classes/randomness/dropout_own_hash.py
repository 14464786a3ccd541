"""Two rounds of a 64-bit finaliser hash the seed and the place; no generator of Triton.

op: dropout
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def finalise(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit(do_not_specialize=["key"])
def kernel(x_ptr, out_ptr, n, key, threshold, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    state = finalise(offsets.to(tl.uint64) * 0x9E3779B97F4A7C15 + key.to(tl.uint64))
    bits = (finalise(state ^ key.to(tl.uint64)) >> 32).to(tl.int64)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.where(bits >= threshold, x * scale, 0.0), mask=mask)


def scrambled(seed):
    z = (seed * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    return (z ^ (z >> 27)) % 2**62


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    kernel[(triton.cdiv(n, 1024),)](x, out, n, scrambled(seed), round(p * 2**32), scale, BLOCK=1024)
    return out
