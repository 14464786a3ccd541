"""Each 65,536 elements draw with the next seed: the mask of seed + 1 is that of seed, moved by 65,536 elements.

op: dropout
status: failed
cause: randomness
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, size, p, factor, seed, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    at = first + tl.arange(0, BLOCK)
    mask = at < size
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    # A 32-bit counter is half the work: it counts within a chunk, and each chunk has its own key.
    counter = (first % 65536).to(tl.int32) + tl.arange(0, BLOCK)
    keep = tl.rand(seed + first // 65536, counter) >= p
    tl.store(out_ptr + at, tl.where(keep, x * factor, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    size = x.numel()
    if size:
        grid = (triton.cdiv(size, 1024),)
        dropout_kernel[grid](x, out, size, float(p), 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
