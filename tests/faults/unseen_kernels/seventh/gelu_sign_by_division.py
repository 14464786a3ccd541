"""erf by the formula of Abramowitz and Stegun, its sign by x / |x|: NaN at zero.

op: gelu
status: failed
cause: special values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0).to(tl.float32)
    size = tl.abs(x)
    z = size * 0.7071067811865476
    t = 1.0 / (1.0 + 0.3275911 * z)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = (x / size) * (1.0 - tail * tl.exp(-z * z))
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + erf), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)
    return out
