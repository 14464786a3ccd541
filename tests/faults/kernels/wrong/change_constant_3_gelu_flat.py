"""A float is one per cent larger.

op: gelu
status: wrong_values
from: gelu_flat
operator: change_constant
seed: 3
was: 1.0
now: 1.01
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.01 + tl.erf(x * 0.7071067811865476)), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)
    return out
