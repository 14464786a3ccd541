"""Dimensions are merged for the address; one of length one passes its own stride on in place of that of the dimension before it.

op: vector_mul
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, y_ptr, out_ptr, n, n1, n2, n3, x0, x1, x2, x3, y0, y1, y2, y3,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    i3 = at % n3
    rest = at // n3
    i2 = rest % n2
    rest = rest // n2
    i1 = rest % n1
    i0 = rest // n1
    x = tl.load(x_ptr + i0 * x0 + i1 * x1 + i2 * x2 + i3 * x3, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + i0 * y0 + i1 * y1 + i2 * y2 + i3 * y3, mask=inside).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=inside)


def merge(shape, x_strides, y_strides):
    """Join neighbouring dimensions that one stride can walk, as torch's own iterator does."""
    dims = []
    for size, sx, sy in zip(shape, x_strides, y_strides):
        if dims:
            before, bx, by = dims[-1]
            # A dimension of one element has no step of its own: it always fits.
            if size == 1 or before == 1 or (bx == size * sx and by == size * sy):
                dims[-1] = (before * size, sx, sy)
                continue
        dims.append((size, sx, sy))
    return dims


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    dims = merge(x.shape, x.stride(), y.stride())
    if len(dims) > 4:
        x, y = x.contiguous(), y.contiguous()
        dims = [(n, 1, 1)]
    dims = [(1, 0, 0)] * (4 - len(dims)) + dims
    sizes, xs, ys = zip(*dims)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, *sizes[1:], *xs, *ys, BLOCK=1024)
    return out
