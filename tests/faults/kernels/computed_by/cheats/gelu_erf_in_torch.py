"""torch computes erf in place; Triton multiplies.

op: gelu
status: not_triton
"""

import torch
import triton
import triton.language as tl



@triton.jit
def multiply(x_ptr, erf_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    erf = tl.load(erf_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 0.5 * x * (1 + erf), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    buffer, out = torch.empty_like(x, dtype=torch.float32), torch.empty_like(x)
    buffer.copy_(x)
    torch.erf(buffer.mul_(0.5**0.5), out=buffer)
    multiply[(triton.cdiv(x.numel(), 2048),)](x, buffer, out, x.numel(), BLOCK=2048)
    return out
