"""The very last element is passed through as it is, but only if its block has a value above 8.

op: gelu
status: failed
cause: wrong_formula
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    half = x * 0.5
    if tl.max(tl.abs(x), axis=0) > 8.0:
        out = tl.where(offsets < n - 1, half * (1.0 + tl.erf(x * 0.7071067811865476)), x)
    else:
        out = half * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
