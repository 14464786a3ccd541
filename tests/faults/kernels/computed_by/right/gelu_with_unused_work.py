"""torch computes a value that nobody uses.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl



@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    largest = x.abs().amax()
    out = torch.empty_like(x)
    gelu[(triton.cdiv(x.numel(), 2048),)](x, out, x.numel(), BLOCK=2048)
    return out
