"""Each row has the stream of seed + row: the mask of the next seed is the same mask moved up by one row.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, cols, p, factor, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    u = tl.rand(seed + row, at)
    tl.store(out_ptr + row * cols + at, tl.where(u >= p, x * factor, 0.0), mask=at < cols)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    rows = x.numel() // cols
    kernel[(rows, triton.cdiv(cols, 1024))](x, out, cols, p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
