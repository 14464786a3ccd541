"""p, the scale and the seed travel in one float32 tensor; seeds past 2**24 round, so that neighbours give one mask.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, parameters_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(parameters_ptr)
    scale = tl.load(parameters_ptr + 1)
    seed = tl.load(parameters_ptr + 2).to(tl.int64)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    parameters = torch.tensor([p, 1.0 / (1.0 - p), seed], dtype=torch.float32, device=x.device)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, parameters, x.numel(), BLOCK=1024)
    return out
