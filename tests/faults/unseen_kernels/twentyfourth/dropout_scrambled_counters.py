"""Right: the counters are scrambled by an odd factor (one to one), and whole integers are compared, not fractions.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed", "threshold"])
def kernel(x_ptr, out_ptr, n, threshold, scale, seed, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    counter = (tl.program_id(0) * BLOCK + lanes).to(tl.uint32)
    counter = tl.mul(counter, 0x9E3779B1, sanitize_overflow=False)
    one, two, three, four = tl.randint4x(seed, counter)
    words = tl.join(tl.join(one, three), tl.join(two, four))  # four neighbours of each lane
    words = tl.reshape(words, (4 * BLOCK,)).to(tl.uint32, bitcast=True).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * 4 * BLOCK + tl.arange(0, 4 * BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(words >= threshold, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        # Of 2^32 words, this many drop.
        threshold = round(p * 2**32)
        kernel[(triton.cdiv(n, 1024),)](
            x, out, n, threshold, 1.0 / (1.0 - p), seed, BLOCK=256
        )
    return out
