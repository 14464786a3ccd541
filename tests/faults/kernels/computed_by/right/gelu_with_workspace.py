"""A workspace is kept between calls.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=mask)


WORK = {}


def triton_gelu(x):
    x = x.contiguous()
    key = (x.numel(), x.device)
    if key not in WORK:
        WORK[key] = torch.empty(x.numel(), dtype=torch.float32, device=x.device)
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 2048),)
    widen[grid](x, WORK[key], x.numel(), BLOCK=2048)
    gelu_kernel[grid](WORK[key], out, x.numel(), BLOCK=2048)
    return out


@triton.jit
def widen(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask).to(tl.float32), mask=mask)
