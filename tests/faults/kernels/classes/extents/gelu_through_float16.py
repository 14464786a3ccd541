"""Two-byte types go through float16: bfloat16 beyond 65,504 becomes infinite.

op: gelu
status: failed
cause: overflow
needs: gpu, the interpreter computes no bfloat16
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, HALF: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    out = x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    if HALF:
        out = tl.where(tl.abs(out) > 256.0, out.to(tl.float16).to(tl.float32), out)
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    half = x.element_size() == 2
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), HALF=half, BLOCK=1024)
    return out
