"""The random counter has the row in one word of Philox and the column in another: no two elements share one.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, cols, p, scale, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row.to(tl.int64) * cols + col
    x = tl.load(x_ptr + at, mask=col < cols, other=0.0).to(tl.float32)
    first = col.to(tl.uint32)
    nothing = first * 0
    bits, _, _, _ = tl.philox(seed, first, nothing + row.to(tl.uint32), nothing, nothing)
    y = tl.where(tl.uint_to_uniform_float(bits) >= p, x * scale, 0.0)
    tl.store(out_ptr + at, y, mask=col < cols)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    kernel[(x.numel() // cols, triton.cdiv(cols, 1024))](x, out, cols, p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
