"""Each row draws with the seed plus its number: the mask of the next seed is this one's, a row higher.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, cols, p, scale, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    offsets = row.to(tl.int64) * cols + at
    x = tl.load(x_ptr + offsets, mask=at < cols, other=0.0).to(tl.float32)
    stay = tl.rand(seed + row, at) >= p
    tl.store(out_ptr + offsets, tl.where(stay, x * scale, 0.0), mask=at < cols)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    kernel[(x.numel() // cols, triton.cdiv(cols, 1024))](x, out, cols, p, 1 / (1 - p), seed, BLOCK=1024)
    return out
