"""Each random number of 32 bits serves two elements, p is rounded down to a multiple of 1 / 65536: a p of 1e-5 drops nothing, one of 0.999999 leaves 15 times too many.

op: dropout
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, threshold, scale, seed, BLOCK: tl.constexpr):
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.randint(seed, pair)
    low = (bits & 0xFFFF).to(tl.int32)
    high = ((bits >> 16) & 0xFFFF).to(tl.int32)
    first = 2 * pair
    second = first + 1
    x = tl.load(x_ptr + first, mask=first < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + first, tl.where(low >= threshold, x * scale, 0.0), mask=first < n)
    x = tl.load(x_ptr + second, mask=second < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + second, tl.where(high >= threshold, x * scale, 0.0), mask=second < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    block = 4096 if n > 1 << 18 else 512
    kernel[(triton.cdiv(n, 2 * block),)](x, out, n, int(p * 65536), 1.0 / (1.0 - p), seed, BLOCK=block)
    return out
