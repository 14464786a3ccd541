"""Kahan's compensation is inf - inf after an infinite element: a row above 512 elements with an infinity has a mean of NaN.

op: mean
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        x = x - lost
        new = acc + x
        lost = (new - acc) - x
        acc = new
    tl.store(out_ptr + tl.program_id(0), tl.sum(acc, axis=0) / m)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(512, triton.next_power_of_2(m)))
    return out
