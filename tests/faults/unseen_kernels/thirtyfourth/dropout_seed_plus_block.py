"""The key of a block's random numbers is seed + block, the counter the place in the block: the mask of
seed + 1 is that of seed, moved by one block of 256. Wrong for two calls with seeds next to each other.

op: dropout
status: failed
cause: dependent seeds
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, out, n, p, scale, seed, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    at = block * BLOCK + lane
    value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    drawn = tl.rand(seed.to(tl.int64) + block, lane)
    tl.store(out + at, tl.where(drawn >= p, value * scale, 0.0).to(out.dtype.element_ty), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        key = torch.tensor([seed], dtype=torch.int64, device=x.device)
        _launch(x, out, n, p, key)
    return out


@triton.jit
def _entry(x, out, n, p, scale, key, BLOCK: tl.constexpr):
    _kernel(x, out, n, p, scale, tl.load(key), BLOCK)


def _launch(x, out, n, p, key):
    _entry[(triton.cdiv(n, 256),)](x, out, n, float(p), 1.0 / (1.0 - p), key, BLOCK=256)
