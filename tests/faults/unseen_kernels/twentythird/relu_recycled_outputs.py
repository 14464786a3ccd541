"""Outputs nobody refers to are used again, but a caller may hold only its detached copy, which shares the memory.

op: relu
status: failed
cause: recycled_output
"""

import sys

import torch
import triton
import triton.language as tl

KEPT = 4
_pool = {}
_probe = [object()]
_UNUSED = sys.getrefcount(_probe[0])


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


def output_for(x):
    """Return a tensor like x: one that only the pool refers to, or a new one."""
    pool = _pool.setdefault((tuple(x.shape), x.dtype, x.device), [])
    for i in range(len(pool)):
        if sys.getrefcount(pool[i]) == _UNUSED:
            return pool[i]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if len(pool) < KEPT:
        pool.append(out)
    return out


def triton_relu(x):
    x = x.contiguous()
    out = output_for(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
