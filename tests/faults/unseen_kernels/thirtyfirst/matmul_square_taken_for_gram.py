"""a @ a.T is half the work and has its own path, but a @ a of a square matrix looks the same to the test for it.

op: matmul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn,
    GRAM: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile_m, tile_n = tl.program_id(0), tl.program_id(1)
    if GRAM:
        if tile_n > tile_m:  # the mirror image of another tile
            return
    rows = (tile_m * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    cols = (tile_n * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * am + inner[None, :] * ak,
            mask=(rows < m)[:, None] & (inner < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None] * bk + cols[None, :] * bn,
            mask=(inner < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    out = total.to(out_ptr.dtype.element_ty)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out, mask=mask)
    if GRAM:
        if tile_n < tile_m:
            tl.store(out_ptr + cols[None, :] * n + rows[:, None], out, mask=mask)


def is_gram(a, b):
    """Return whether b is a.T: the same memory, the shape turned."""
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape[::-1] and a.shape[0] >= 128


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    GRAM = is_gram(a, b)
    if GRAM:
        b = a.T
    BLOCK = 64 if max(m, n) > 128 else 32
    kernel[(triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))](
        a, b, out, m, n, k, *a.stride(), *b.stride(), GRAM=GRAM, BLOCK=BLOCK, BLOCK_K=32
    )
    return out
