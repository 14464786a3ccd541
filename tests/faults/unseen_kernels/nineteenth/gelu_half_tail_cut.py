"""In the half types everything below -4 becomes zero, as if a half had no digits there: gelu(-4.2) is -5.6e-5, an ordinary number in both.

op: gelu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, HALF: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if HALF:  # saturated: beyond what a half resolves next to 1
        y = tl.where(x > 4.0, x, tl.where(x < -4.0, 0.0, y))
    tl.store(out_ptr + at, y, mask=at < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    half = x.dtype in (torch.float16, torch.bfloat16)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), HALF=half, BLOCK=1024)
    return out
