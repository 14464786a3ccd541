"""Neighbouring dimensions are merged where the strides of both tensors allow it.

op: vector_add
status: passed
drawn: no
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


def merge(x, y):
    shape, xs, ys = [x.shape[0]], [x.stride(0)], [y.stride(0)]
    for n, sx, sy in zip(x.shape[1:], x.stride()[1:], y.stride()[1:], strict=True):
        if xs[-1] == sx * n and ys[-1] == sy * n:
            shape[-1], xs[-1], ys[-1] = shape[-1] * n, sx, sy
        else:
            shape, xs, ys = [*shape, n], [*xs, sx], [*ys, sy]
    missing = 3 - len(shape)
    return [1] * missing + shape, [0] * missing + xs, [0] * missing + ys


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, n1, n2, x0, x1, x2, y0, y1, y2, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    i2, i1, i0 = offsets % n2, offsets // n2 % n1, offsets // n2 // n1
    x = tl.load(x_ptr + i0 * x0 + i1 * x1 + i2 * x2, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + i0 * y0 + i1 * y1 + i2 * y2, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    a, b = (x, y) if 1 <= x.dim() <= 3 else (x.reshape(-1), y.reshape(-1))
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    (_, n1, n2), xs, ys = merge(a, b)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](a, b, out, n, alpha, n1, n2, *xs, *ys, BLOCK=1024)
    return out
