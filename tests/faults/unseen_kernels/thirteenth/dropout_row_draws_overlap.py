"""A row's draws begin 8192 behind those of the row before at most: of rows over 8192 the end repeats the mask of the next row's begin.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, p, scale, seed, spacing, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    passes = tl.rand(seed, row * spacing + cols) >= p
    tl.store(out_ptr + row * m + cols, tl.where(passes, x * scale, 0.0), mask=cols < m)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    spacing = min(triton.next_power_of_2(m), 8192)
    kernel[(x.numel() // m, triton.cdiv(m, 1024))](x, out, m, p, 1.0 / (1.0 - p), seed, spacing, BLOCK=1024)
    return out
