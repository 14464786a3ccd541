"""A random word serves four elements, a byte each, and p is rounded to a multiple of 1/256: nothing is dropped at p = 0.001.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, limit, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.randint(seed, at // 4)
    byte = (word >> (8 * (at % 4))) & 255
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(byte >= limit, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x, out, x.numel(), round(p * 256), 1.0 / (1.0 - p), seed, BLOCK=1024,
    )
    return out
