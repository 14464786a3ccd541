"""A whole block whose maximum is below -12 is stored as zeros without erf: the maximum ignores NaN, so a NaN there becomes 0.

op: gelu
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    if tl.max(x, axis=0) < -12.0:  # 1 + erf is 0 in float32: skip it
        tl.store(out_ptr + places, tl.zeros((BLOCK,), dtype=out_ptr.dtype.element_ty), mask=mask)
    else:
        out = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
        tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128, num_warps=1)
    return out
