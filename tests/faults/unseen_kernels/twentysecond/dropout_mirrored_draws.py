"""One draw serves two elements, as u and as 1 - u: each element has the right chance, but at p = 0.5 exactly one of each two survives.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, p, scale, seed, HALF: tl.constexpr):
    lane = tl.arange(0, HALF)
    block = tl.program_id(0)
    u = tl.rand(seed, block * HALF + lane)
    low = block * 2 * HALF + lane
    high = low + HALF
    x = tl.load(x_ptr + low, mask=low < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + low, tl.where(u >= p, x * scale, 0.0), mask=low < n)
    # 1 - u is uniform as well: half of the draws are saved.
    x = tl.load(x_ptr + high, mask=high < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + high, tl.where(1.0 - u >= p, x * scale, 0.0), mask=high < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, HALF=512)
    return out
