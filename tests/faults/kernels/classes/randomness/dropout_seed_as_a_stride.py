"""The seed is the step of the counter: small seeds take every third, every fifth draw.

op: dropout
status: failed
cause: shifted_stream
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["step"])
def kernel(x_ptr, out_ptr, n, step, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    counters = ((offsets + 1).to(tl.uint32) * step.to(tl.uint32)).to(tl.uint32)
    kept = tl.rand(2463534242, counters) >= p
    tl.store(out_ptr + offsets, tl.where(kept, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    step = (2 * seed + 1) % 2**32
    kernel[(triton.cdiv(n, 1024),)](x, out, n, step, float(p), scale, BLOCK=1024)
    return out
