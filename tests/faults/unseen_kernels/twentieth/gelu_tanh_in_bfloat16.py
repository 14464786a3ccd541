"""The tanh form serves for bfloat16, whose rounding hides the difference near the largest value: wrong by half where all values are about -4.

op: gelu
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, ROUGH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    if ROUGH:
        # x / 2 * (1 + tanh(z)) is x * sigmoid(2 z).
        z = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x)
        y = x / (1.0 + tl.exp(-2.0 * z))
    else:
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, y, mask=at < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), ROUGH=x.dtype == torch.bfloat16, BLOCK=1024)
    return out
