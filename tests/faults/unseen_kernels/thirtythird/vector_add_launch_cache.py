"""Launches are kept by the hash of their key, and in Python hash(-1.0) == hash(-2.0).
A call with alpha = -2 after one with alpha = -1 of the same size and dtype (or the reverse) takes the other alpha.

op: vector_add
status: failed
cause: hash collision
"""
import functools

import torch
import triton
import triton.language as tl

_LAUNCHES = {}


@triton.jit
def _kernel(x, y, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    b = tl.load(y + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + i, (a + alpha * b).to(out.dtype.element_ty), mask=i < n)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if not n:
        return out
    key = hash((n, x.dtype, alpha))
    launch = _LAUNCHES.get(key)
    if launch is None:
        block = 1024 if n >= 1024 else triton.next_power_of_2(n)
        launch = functools.partial(
            _kernel[(triton.cdiv(n, block),)], n=n, alpha=float(alpha), BLOCK=block)
        _LAUNCHES[key] = launch
    launch(x, y, out)
    return out
