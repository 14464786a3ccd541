"""One call of the generator makes four words for four quarters of the tensor; a word is compared with p * 2^32 as an integer.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def quarter(x_ptr, out_ptr, at, inside, word, threshold, scale):
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    stays = (word.to(tl.int64) & 0xFFFFFFFF) >= threshold
    tl.store(out_ptr + at, tl.where(stays, x * scale, 0.0), mask=inside)


@triton.jit
def kernel(x_ptr, out_ptr, n, size, threshold, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second, third, fourth = tl.randint4x(seed, at)
    inside = at < size
    quarter(x_ptr, out_ptr, at, inside & (at < n), first, threshold, scale)
    quarter(x_ptr, out_ptr, at + size, inside & (at + size < n), second, threshold, scale)
    quarter(x_ptr, out_ptr, at + 2 * size, inside & (at + 2 * size < n), third, threshold, scale)
    quarter(x_ptr, out_ptr, at + 3 * size, inside & (at + 3 * size < n), fourth, threshold, scale)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    size = triton.cdiv(x.numel(), 4)
    kernel[(triton.cdiv(size, 512),)](
        x, out, x.numel(), size, round(p * 2**32), 1.0 / (1.0 - p), seed, BLOCK=512,
    )
    return out
