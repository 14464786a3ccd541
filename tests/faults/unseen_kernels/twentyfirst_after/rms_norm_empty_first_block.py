"""A row whose first 2048 columns are zero is taken for a row of padding and becomes zero: wrong if a later block of it holds values.

op: rms_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
    used = tl.where(tl.max(tl.abs(x), axis=0) == 0.0, 0, m)  # do not read rows of padding
    squares = x * x
    for start in range(BLOCK, used, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < used, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + at, x * scale * weight, mask=at < m)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, weight, out, m, eps, BLOCK=min(2048, triton.next_power_of_2(m)))
    return out
