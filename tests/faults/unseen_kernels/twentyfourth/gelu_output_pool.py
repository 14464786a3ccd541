"""Outputs come from a pool; one counts as free when its tensor is gone, though a view of it may be in use.

op: gelu
status: failed
cause: lifetime
"""

import weakref

import torch
import triton
import triton.language as tl

SLOTS = 8  # outputs kept for a shape, a dtype and a device
_pool = {}


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, y, mask=at < n)


def take(x):
    """Return an output for x: a new one, or one that the caller has released."""
    slots = _pool.setdefault((x.shape, x.dtype, x.device), [])
    for slot in slots:
        buffer, handed_out = slot
        if handed_out() is None:
            out = buffer.view(x.shape)
            slot[1] = weakref.ref(out)
            return out
    buffer = torch.empty(x.numel(), dtype=x.dtype, device=x.device)
    out = buffer.view(x.shape)
    if len(slots) < SLOTS:
        slots.append([buffer, weakref.ref(out)])
    return out


def triton_gelu(x):
    x = x.contiguous()
    out = take(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
