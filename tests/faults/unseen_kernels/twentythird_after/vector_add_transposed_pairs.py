"""Right: where y is x's own transpose, two tiles across the diagonal are read once and give two tiles of the result, each with its own alpha.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pairs_kernel(x_ptr, out_ptr, n, row_stride, col_stride, alpha, BLOCK: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    if j > i:
        return
    rows = (i * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    cols = (j * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    lower = (rows < n)[:, None] & (cols < n)[None, :]
    upper = (cols < n)[:, None] & (rows < n)[None, :]
    a = tl.load(x_ptr + rows[:, None] * row_stride + cols[None, :] * col_stride, mask=lower)
    b = tl.load(x_ptr + cols[:, None] * row_stride + rows[None, :] * col_stride, mask=upper)
    a, b = a.to(tl.float32), b.to(tl.float32)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], a + alpha * tl.trans(b), mask=lower)
    if j < i:
        tl.store(out_ptr + cols[:, None] * n + rows[None, :], b + alpha * tl.trans(a), mask=upper)


@triton.jit
def flat_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def is_transpose(x, y):
    square = x.dim() == 2 and x.shape[0] == x.shape[1]
    return square and x.data_ptr() == y.data_ptr() and x.stride() == y.stride()[::-1]


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n and is_transpose(x, y):
        tiles = triton.cdiv(x.shape[0], 32)
        pairs_kernel[(tiles, tiles)](x, out, x.shape[0], *x.stride(), float(alpha), BLOCK=32)
    elif n:
        x, y = x.contiguous(), y.contiguous()
        flat_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, float(alpha), BLOCK=1024)
    return out
