"""Neighbouring dimensions are merged where the strides of both inputs allow it, others are walked.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, size1, size0, x2, x1, x0, y2, y1, y0, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    i0 = at % size0
    i1 = (at // size0) % size1
    i2 = at // (size0 * size1)
    x = tl.load(x_ptr + i2 * x2 + i1 * x1 + i0 * x0, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + i2 * y2 + i1 * y1 + i0 * y0, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=mask)


def merge(x, y):
    dims = []
    for size, sx, sy in zip(x.shape, x.stride(), y.stride()):
        if size == 1:
            continue
        if dims and dims[-1][1] == sx * size and dims[-1][2] == sy * size:
            dims[-1] = (dims[-1][0] * size, sx, sy)
        else:
            dims.append((size, sx, sy))
    return [(1, 0, 0)] * (3 - len(dims)) + dims


def triton_vector_mul(x, y):
    dims = merge(x, y)
    if len(dims) > 3:
        x, y = x.contiguous(), y.contiguous()
        dims = merge(x, y)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    (_, x2, y2), (size1, x1, y1), (size0, x0, y0) = dims
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, size1, size0, x2, x1, x0, y2, y1, y0, BLOCK=1024)
    return out
