"""Right: the value that is subtracted lags behind the maximum by up to 5, and some programs have no row.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, m, n_blocks, BLOCK: tl.constexpr, LAG: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if row >= rows:
        return
    x_ptr += row * m
    out_ptr += row * m
    base = -float("inf")
    total = 0.0
    for block in range(n_blocks):
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        # exp(LAG) times a row's length is far from overflow: rescale seldom.
        if top > base + LAG:
            total *= tl.exp(base - top)
            base = top
        total += tl.sum(tl.exp(x - tl.where(base == -float("inf"), 0.0, base)), axis=0)
    base = tl.where(base == -float("inf"), 0.0, base)
    for back in range(n_blocks):  # the last block is still in the cache
        cols = (n_blocks - 1 - back) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - base) / total
        tl.store(out_ptr + cols, y.to(out_ptr.dtype.element_ty), mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    block = min(512, triton.next_power_of_2(m))
    grid = (triton.cdiv(rows, 8) * 8,)
    kernel[grid](x, out, rows, m, triton.cdiv(m, block), BLOCK=block, LAG=5.0)
    return out
