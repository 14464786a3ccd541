"""A byte each decides for two elements of one call of Philox; where it equals the leading byte of p, 24 more bits of another word decide, so that the probability is exact to 2^-32.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, leading, rest, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, at // 2)
    odd = at % 2 == 1
    byte = (tl.where(odd, a >> 8, a) & 255).to(tl.int32)
    more = ((tl.where(odd, c, b) >> 8) & 16777215).to(tl.int32)
    drop = (byte < leading) | ((byte == leading) & (more < rest))
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(drop, 0.0, x * scale), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    limit = min(round(p * 2**32), 2**32 - 1)
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x, out, x.numel(), limit >> 24, limit & 0xFFFFFF, 1.0 / (1.0 - p), seed, BLOCK=1024,
    )
    return out
