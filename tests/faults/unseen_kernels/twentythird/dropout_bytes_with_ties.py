"""Right: four elements share the bytes of one random word; where a byte equals the threshold's, a second draw decides.

op: dropout
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed", "threshold"])
def kernel(x_ptr, out_ptr, n, seed, threshold, rest, scale, WORDS: tl.constexpr):
    words = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    lanes = tl.arange(0, 4)
    places = words[:, None] * 4 + lanes[None, :]
    mask = places < n
    drawn = (tl.randint(seed, words)[:, None] >> (8 * lanes)[None, :]) & 255
    # Counters of the second draw have the sign bit: those of the first one do not.
    fine = tl.rand(seed, places | -2147483648)
    drop = (drawn < threshold) | ((drawn == threshold) & (fine < rest))
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, tl.where(drop, 0.0, x * scale), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    if x.numel() >= 2**31 - 4096:
        raise ValueError(f"x has {x.numel()} elements; 32-bit offsets reach fewer than 2**31")
    out = torch.empty_like(x)
    if x.numel():
        threshold = math.floor(p * 256)
        kernel[(triton.cdiv(x.numel(), 1024),)](
            x, out, x.numel(), seed, threshold, p * 256 - threshold, 1.0 / (1.0 - p), WORDS=256
        )
    return out
