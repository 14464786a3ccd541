"""y is read by its strides, zeros among them, with three dimensions in the kernel and the others folded before: no copy of an expanded y.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, middle, last, x0, x1, x2, y0, y1, y2, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    k, j, i = offsets % last, offsets // last % middle, offsets // last // middle
    x = tl.load(x_ptr + i * x0 + j * x1 + k * x2, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + i * y0 + j * y1 + k * y2, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def three(t):
    while t.dim() < 3:
        t = t.unsqueeze(0)
    return t.flatten(0, -3)  # a view where the strides allow it, else a copy


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    x, y = three(x), three(y)
    kernel[(triton.cdiv(out.numel(), 1024),)](
        x, y, out, out.numel(), x.shape[1], x.shape[2], *x.stride(), *y.stride(), BLOCK=1024
    )
    return out
