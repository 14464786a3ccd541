"""Elements are scaled first and multiplied by 0 or 1 then: a dropped one whose scaled value overflows is inf * 0, NaN.

op: dropout
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * (4 * BLOCK)
    lane = tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.rand4x(seed, (tl.program_id(0) * BLOCK + lane))
    for part in tl.static_range(4):
        r = r0 if part == 0 else (r1 if part == 1 else (r2 if part == 2 else r3))
        offs = base + part * BLOCK + lane
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
        keep = (r >= p).to(tl.float32)
        tl.store(out_ptr + offs, x * scale * keep, mask=offs < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, BLOCK=256)
    return out
