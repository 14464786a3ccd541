"""Nothing wrong: a p that is a multiple of 1/16 takes draws of four bits, any other one of 32.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def nibble_kernel(x_ptr, out_ptr, n, threshold, scale, seed, BLOCK: tl.constexpr):
    words = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    drawn = tl.randint(seed, words)
    lanes = tl.arange(0, 8)
    nibbles = (drawn[:, None] >> (4 * lanes)[None, :]) & 15  # eight draws a word
    places = words[:, None].to(tl.int64) * 8 + lanes[None, :]
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, tl.where(nibbles >= threshold, x * scale, 0.0), mask=mask)


@triton.jit
def word_kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(seed, places) >= p
    tl.store(out_ptr + places, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n, scale = x.numel(), 1.0 / (1.0 - p)
    sixteenths = int(p * 16)
    if sixteenths == p * 16:  # exact in binary
        grid = (triton.cdiv(triton.cdiv(n, 8), 256),)
        nibble_kernel[grid](x, out, n, sixteenths, scale, seed, BLOCK=256)
    else:
        word_kernel[(triton.cdiv(n, 1024),)](x, out, n, p, scale, seed, BLOCK=1024)
    return out
