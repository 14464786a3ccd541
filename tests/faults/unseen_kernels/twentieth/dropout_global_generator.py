"""The generator's key is drawn after torch.manual_seed(seed): the mask is right, but each call sets back torch's own random numbers.

op: dropout
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    stays = tl.rand(seed, at) >= p
    tl.store(out_ptr + at, tl.where(stays, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    # Seeds 0, 1, 2, ... are alike: draw a well mixed key from each.
    torch.manual_seed(seed)
    key = int(torch.randint(0, 2**62, (1,)))
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, 1.0 / (1.0 - p), key, BLOCK=1024)
    return out
