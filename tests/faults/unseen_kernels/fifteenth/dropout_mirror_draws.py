"""The second half of the tensor takes one minus the draws of the first, in reverse: of a pair of mirrored elements exactly one stays at p = 0.5.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    low = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    high = n - 1 - low
    inside = low <= high
    u = tl.rand(seed, low)
    x = tl.load(x_ptr + low, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(x_ptr + high, mask=inside & (low < high), other=0.0).to(tl.float32)
    tl.store(out_ptr + low, tl.where(u >= p, x * scale, 0.0), mask=inside)
    tl.store(out_ptr + high, tl.where(1.0 - u >= p, y * scale, 0.0), mask=inside & (low < high))


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv((n + 1) // 2, 512),)](x, out, n, p, 1 / (1 - p), seed, BLOCK=512)
    return out
