"""A product of rows with their own transpose is taken for symmetric by address and strides: wrong if b has more columns.

op: matmul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
    GRAM: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile_m, tile_n = tl.program_id(0), tl.program_id(1)
    if GRAM:
        if tile_n > tile_m:  # the mirror image of a tile below the diagonal
            return
    rows = tile_m.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = tile_n.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=inside)
    if GRAM:
        if tile_n < tile_m:
            inside = (cols < m)[:, None] & (rows < n)[None, :]
            tl.store(out_ptr + cols[:, None] * n + rows[None, :], tl.trans(acc), mask=inside)


def is_gram(a, b):
    """Return whether b is a's transpose, so that half of the tiles will do."""
    return a.data_ptr() == b.data_ptr() and a.stride() == b.stride()[::-1]


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
            a, b, out, m, n, k, *a.stride(), *b.stride(),
            GRAM=is_gram(a, b), BLOCK=64, BLOCK_K=32,
        )
    return out
