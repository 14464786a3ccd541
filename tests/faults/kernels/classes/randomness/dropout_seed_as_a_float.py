"""The seed lies in a float32 tensor, so large seeds near each other are one.

op: dropout
status: failed
cause: ignored_argument
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(tl.load(seed_ptr).to(tl.int32), places) >= p
    tl.store(out_ptr + places, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    number = torch.full((1,), float(seed), dtype=torch.float32, device=x.device)
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, number, BLOCK=1024)
    return out
