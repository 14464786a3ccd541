"""Prepared launches are kept by shape and the whole part of alpha: 0.5 and then 0.1 at one shape share one.

op: vector_add
status: failed
cause: stale scalar
"""

import torch
import triton
import triton.language as tl
_LAUNCHERS = {}


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, ALPHA: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=inside).to(tl.float32)
    tl.store(out_ptr + offs, x + ALPHA * y, mask=inside)


def _launcher(x, alpha):
    """Bind grid and constants once: the launch path of Triton costs more than a small add."""
    key = (x.shape, x.dtype, x.device, int(alpha))
    if key not in _LAUNCHERS:
        n = x.numel()
        block = 256 if n < 2**16 else 1024
        grid = (triton.cdiv(n, block),)

        def launch(x, y, out):
            kernel[grid](x, y, out, n, ALPHA=float(alpha), BLOCK=block)

        _LAUNCHERS[key] = launch
    return _LAUNCHERS[key]


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    _launcher(x, alpha)(x, y, out)
    return out
