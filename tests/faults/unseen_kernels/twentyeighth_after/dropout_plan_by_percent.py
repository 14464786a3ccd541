"""The threshold and the scale are kept by p in whole percent: p = 0.003 after p = 0 drops nothing.

op: dropout
status: failed
cause: cache_key
"""

import torch
import triton
import triton.language as tl

_plans = {}


@triton.jit
def kernel(x_ptr, out_ptr, n, threshold, scale, seed, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    bits = tl.randint(seed, places) & 0x7FFFFFFF
    keep = bits >= threshold
    tl.store(out_ptr + places, tl.where(keep, x * scale, 0.0), mask=mask)


def make_plan(p):
    return min(round(p * 2**31), 2**31 - 1), 1.0 / (1.0 - p)


def triton_dropout(x, p=0.5, seed=0):
    if not 0 <= p < 1:
        raise ValueError(f"p is {p}; it must be in [0, 1)")
    key = round(100 * p)  # a schedule gives 0.1 and 0.1 + 1e-17: no plan for each
    if key not in _plans:
        _plans[key] = make_plan(p)
    threshold, scale = _plans[key]
    x = x.contiguous()
    out = torch.empty_like(x)
    n, block = x.numel(), 1024
    kernel[(triton.cdiv(n, block),)](x, out, n, threshold, scale, seed, BLOCK=block)
    return out
