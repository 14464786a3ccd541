"""One call of the generator makes four integers, for four rows of a block of columns; an element stays where its integer is at least p * 2^32.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def word(x_ptr, out_ptr, at, n, bits, threshold, scale):
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    stays = bits.to(tl.uint32, bitcast=True).to(tl.int64) >= threshold
    tl.store(out_ptr + at, tl.where(stays, x * scale, 0.0), mask=at < n)


@triton.jit
def kernel(x_ptr, out_ptr, n, seed, threshold, scale, BLOCK: tl.constexpr):
    first = tl.program_id(0) * (4 * BLOCK) + tl.arange(0, BLOCK)
    counter = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, counter)
    word(x_ptr, out_ptr, first, n, a, threshold, scale)
    word(x_ptr, out_ptr, first + BLOCK, n, b, threshold, scale)
    word(x_ptr, out_ptr, first + 2 * BLOCK, n, c, threshold, scale)
    word(x_ptr, out_ptr, first + 3 * BLOCK, n, d, threshold, scale)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, seed, round(p * 2**32), 1.0 / (1.0 - p), BLOCK=256)
    return out
