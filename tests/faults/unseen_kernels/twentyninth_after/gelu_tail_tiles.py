"""Right: tiles whose values are all 7 or more are copied, tiles that are all below -40 get zeros, and only the others compute erf.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, tiles, EACH: tl.constexpr, BLOCK: tl.constexpr):
    for i in tl.static_range(EACH):
        tile = tl.program_id(0).to(tl.int64) * EACH + i
        if tile < tiles:
            at = tile * BLOCK + tl.arange(0, BLOCK)
            mask = at < n
            x = tl.load(x_ptr + at, mask=mask, other=0.0)
            wide = x.to(tl.float32)
            # 1 - Phi(7) is 1.3e-12, below a rounding of float32; a NaN is not above 7
            others = tl.max((mask & ~(wide >= 7.0)).to(tl.int32), axis=0)
            # Phi(-40) is zero in float32; minus infinity times it is NaN, so that is no tail
            tail = (wide < -40.0) & (wide > -float("inf"))
            outside = tl.max((mask & ~tail).to(tl.int32), axis=0)
            if others == 0:
                tl.store(out_ptr + at, x, mask=mask)
            elif outside == 0:
                tl.store(out_ptr + at, wide * 0.0, mask=mask)
            else:
                y = wide * 0.5 * (1.0 + tl.erf(wide * 0.7071067811865476))
                tl.store(out_ptr + at, y, mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        BLOCK = 256
        tiles = triton.cdiv(x.numel(), BLOCK)
        kernel[(triton.cdiv(tiles, 4),)](x, out, x.numel(), tiles, EACH=4, BLOCK=BLOCK)
    return out
