"""Right: where b is the transpose of a in the same memory, only the tiles on and above the diagonal are computed, and each is
stored twice.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n,
    GRAM: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    i = tl.program_id(1).to(tl.int64)
    j = tl.program_id(0).to(tl.int64)
    if GRAM:
        if i > j:  # the mirrored tile's program stores this one
            return
    rows = i * BLOCK + tl.arange(0, BLOCK)
    cols = j * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * a_m + ks[None, :] * a_k,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_k + cols[None, :] * b_n,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)
    if GRAM:
        if i < j:
            mask = (cols < n)[:, None] & (rows < m)[None, :]
            tl.store(out_ptr + cols[:, None] * n + rows[None, :], tl.trans(acc), mask=mask)


def is_gram(a, b):
    """Return whether b is a's transpose, element for element in the same place."""
    same_shape = a.shape == b.shape[::-1]
    return same_shape and a.data_ptr() == b.data_ptr() and a.stride() == b.stride()[::-1]


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        BLOCK = 32
        kernel[(triton.cdiv(n, BLOCK), triton.cdiv(m, BLOCK))](
            a, b, out, m, n, k, *a.stride(), *b.stride(), GRAM=is_gram(a, b), BLOCK=BLOCK, BLOCK_K=32
        )
    return out
