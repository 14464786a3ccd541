"""Each row draws from seed + row: the mask of the next seed is the mask of this seed, moved up by a row.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, seed, cols, p, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
    draws = tl.rand(seed + row, at)
    tl.store(out_ptr + row * cols + at, tl.where(draws >= p, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    grid = (x.numel() // cols, triton.cdiv(cols, 1024))
    kernel[grid](x, out, seed, cols, float(p), 1.0 / (1.0 - p), BLOCK=1024)
    return out
