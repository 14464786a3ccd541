"""A launcher is kept for each shape, with the alpha of the first call bound into it.

op: vector_add
status: failed
cause: stale_cache
held_out: yes
round: second
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


LAUNCHERS = {}


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    key = (x.shape, x.dtype, x.device)
    if key not in LAUNCHERS:
        n = x.numel()
        LAUNCHERS[key] = functools.partial(
            kernel[(triton.cdiv(n, 1024),)], n=n, alpha=alpha, BLOCK=1024
        )
    LAUNCHERS[key](x, y, out)
    return out
