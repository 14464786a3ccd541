"""The sum is compensated (Kahan), and the compensation of an infinity is inf - inf: a row with an infinity gives NaN.

op: sum
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        added = x - lost
        new = total + added
        lost = (new - total) - added
        total = new
    tl.store(out_ptr + row, tl.sum(total - lost, axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(512, triton.next_power_of_2(m)))
    return out
