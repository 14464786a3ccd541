"""The seed is cut to 31 bits, so seeds that differ above them, as step * 2**32 + layer, give one mask.

op: dropout
status: failed
cause: determinism
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    seed = seed & 0x7FFFFFFF  # always an int32: no second compilation for 64-bit seeds
    kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
