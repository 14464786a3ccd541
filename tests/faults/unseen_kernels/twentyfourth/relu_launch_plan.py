"""The launch is planned once for all sizes up to the same power of two, and the plan holds the first one's grid.

op: relu
status: failed
cause: cache
"""

import torch
import triton
import triton.language as tl

_plans = {}


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


def plan(n, dtype):
    """Grid, block and warps. Small calls are bound by the host, so each is worked out once."""
    key = (triton.next_power_of_2(n), dtype)
    if key not in _plans:
        BLOCK = min(4096 if dtype == torch.float32 else 8192, key[0])
        _plans[key] = (triton.cdiv(n, BLOCK),), BLOCK, max(1, min(8, BLOCK // 256))
    return _plans[key]


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        grid, BLOCK, num_warps = plan(n, x.dtype)
        kernel[grid](x, out, n, BLOCK=BLOCK, num_warps=num_warps)
    return out
