"""Past 3.5 the output is x, and 0 below -3.5, where the error is still 8e-4.

op: gelu
status: failed
cause: wrong_formula
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    inner = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    out = tl.where(x > 3.5, x, tl.where(x < -3.5, 0.0, inner))
    tl.store(out_ptr + offsets, out, mask=offsets < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
