"""The sum of the squares plus m * eps, under one root with the width in front: right for every eps, 0 and large ones too.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, added, root, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    factor = root / tl.sqrt(tl.sum(squares, axis=0) + added)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + cols, x * factor * weight, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    block = min(1024, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](x, weight, out, m, float(m * eps), float(m**0.5), BLOCK=block)
    return out
