"""One kernel writes 1 + erf to a float32 buffer, the next multiplies.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def cdf_kernel(x_ptr, cdf_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(cdf_ptr + offsets, 1.0 + tl.erf(x * 0.7071067811865476), mask=mask)


@triton.jit
def scale_kernel(x_ptr, cdf_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    cdf = tl.load(cdf_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 0.5 * x * cdf, mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    cdf = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(out.numel(), 1024),)
    cdf_kernel[grid](x, cdf, out.numel(), BLOCK=1024)
    scale_kernel[grid](x, cdf, out, out.numel(), BLOCK=1024)
    return out
