"""Nothing wrong: a word of the generator is compared with p * 2**32 as a whole number; four words a call.

op: dropout
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def drop(x_ptr, out_ptr, offs, n, word, threshold, scale):
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
    keep = (word.to(tl.int64) & 0xFFFFFFFF) >= threshold
    tl.store(out_ptr + offs, tl.where(keep, x * scale, 0.0), mask=inside)


@triton.jit
def kernel(x_ptr, out_ptr, n, threshold, scale, seed, BLOCK: tl.constexpr):
    group = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    w0, w1, w2, w3 = tl.randint4x(seed, group.to(tl.int32))
    start = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, BLOCK)
    drop(x_ptr, out_ptr, start, n, w0, threshold, scale)
    drop(x_ptr, out_ptr, start + BLOCK, n, w1, threshold, scale)
    drop(x_ptr, out_ptr, start + 2 * BLOCK, n, w2, threshold, scale)
    drop(x_ptr, out_ptr, start + 3 * BLOCK, n, w3, threshold, scale)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    threshold = int(p * 2**32)
    kernel[(triton.cdiv(n, 1024),)](x, out, n, threshold, 1.0 / (1.0 - p), seed, BLOCK=256)
    return out
