"""Every second element uses one minus its neighbour's draw.

op: dropout
status: failed
cause: shared_draws
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.where(offsets % 2 == 0, tl.rand(seed, offsets // 2), 1.0 - tl.rand(seed, offsets // 2)) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, BLOCK=1024)
    return out
