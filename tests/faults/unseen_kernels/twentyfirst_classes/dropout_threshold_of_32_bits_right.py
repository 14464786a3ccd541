"""All 32 random bits are compared, unsigned, with p * 2^32 rounded: right from p = 0 to p just below 1.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, threshold, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    bits = tl.randint(seed, at).to(tl.int64) & 0xFFFFFFFF
    tl.store(out_ptr + at, tl.where(bits >= threshold, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    block = 4096 if n > 1 << 18 else 512
    kernel[(triton.cdiv(n, block),)](x, out, n, round(p * 2**32), 1.0 / (1.0 - p), seed, BLOCK=block)
    return out
