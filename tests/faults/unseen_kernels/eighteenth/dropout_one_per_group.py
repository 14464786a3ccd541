"""Up to p = 0.1 one random number serves four elements and names the one to drop: each is dropped with probability p, but never two of a group.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def each(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(tl.rand(seed, at) >= p, x * scale, 0.0), mask=at < n)


@triton.jit
def grouped(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, 4)
    # A quarter of the random numbers: [0, p) drops element 0, [p, 2p) element 1, and so on.
    u = tl.rand(seed, group)[:, None]
    dropped = (u >= lane[None, :] * p) & (u < (lane[None, :] + 1) * p)
    at = group[:, None] * 4 + lane[None, :]
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(dropped, 0.0, x * scale), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    n = x.numel()
    out = torch.empty_like(x)
    if p <= 0.1:
        grouped[(triton.cdiv(n, 1024),)](x, out, n, seed, p, 1.0 / (1.0 - p), BLOCK=256)
    else:
        each[(triton.cdiv(n, 1024),)](x, out, n, seed, p, 1.0 / (1.0 - p), BLOCK=1024)
    return out
