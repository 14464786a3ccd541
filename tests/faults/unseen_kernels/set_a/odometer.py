"""Nothing wrong: every lane unwinds its place into coordinates and follows the strides of each operand; nothing is copied.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _odometer(
    x_ptr, y_ptr, out_ptr, n, alpha, sizes, x_strides, y_strides,
    RANK: tl.constexpr, BLOCK: tl.constexpr,
):
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = lane < n
    rest = lane
    x_at = tl.zeros((BLOCK,), tl.int64)
    y_at = tl.zeros((BLOCK,), tl.int64)
    for back in tl.static_range(RANK):
        digit = rest % sizes[RANK - 1 - back]
        rest = rest // sizes[RANK - 1 - back]
        x_at += digit * x_strides[RANK - 1 - back]
        y_at += digit * y_strides[RANK - 1 - back]
    x = tl.load(x_ptr + x_at, mask=m, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + y_at, mask=m, other=0.0).to(tl.float32)
    tl.store(out_ptr + lane, tl.fma(y, tl.zeros_like(y) + alpha, x), mask=m)


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    # Drop the dimensions of one element; a scalar keeps one.
    cached = [d for d in range(x.dim()) if x.shape[d] != 1]
    sizes = tuple(x.shape[d] for d in cached) or (1,)
    xs = tuple(x.stride(d) for d in cached) or (0,)
    ys = tuple(y.stride(d) for d in cached) or (0,)
    _odometer[(triton.cdiv(n, 256),)](
        x, y, out, n, float(alpha), sizes, xs, ys, RANK=len(sizes), BLOCK=256
    )
    return out
