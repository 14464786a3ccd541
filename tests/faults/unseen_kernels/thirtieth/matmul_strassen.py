"""Strassen's seven products for large even sizes: rows that are far smaller than others drown in their rounding.

op: matmul
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn, a2, b2,
    A_SIGN: tl.constexpr, B_SIGN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a_mask = (rows[:, None] < m) & (ks[None, :] < k)
        b_mask = (ks[:, None] < k) & (cols[None, :] < n)
        a_at = a_ptr + rows[:, None] * am + ks[None, :] * ak
        b_at = b_ptr + ks[:, None] * bk + cols[None, :] * bn
        a = tl.load(a_at, mask=a_mask, other=0.0).to(tl.float32)
        b = tl.load(b_at, mask=b_mask, other=0.0).to(tl.float32)
        if A_SIGN != 0:
            a += A_SIGN * tl.load(a_at + a2, mask=a_mask, other=0.0).to(tl.float32)
        if B_SIGN != 0:
            b += B_SIGN * tl.load(b_at + b2, mask=b_mask, other=0.0).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


@triton.jit
def join(work_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    size = m.to(tl.int64) * n
    mask = at < size
    m1 = tl.load(work_ptr + at, mask=mask)
    m2 = tl.load(work_ptr + size + at, mask=mask)
    m3 = tl.load(work_ptr + 2 * size + at, mask=mask)
    m4 = tl.load(work_ptr + 3 * size + at, mask=mask)
    m5 = tl.load(work_ptr + 4 * size + at, mask=mask)
    m6 = tl.load(work_ptr + 5 * size + at, mask=mask)
    m7 = tl.load(work_ptr + 6 * size + at, mask=mask)
    to = out_ptr + at // n * (2 * n) + at % n
    tl.store(to, m1 + m4 - m5 + m7, mask=mask)
    tl.store(to + n, m3 + m5, mask=mask)
    tl.store(to + 2 * size, m2 + m4, mask=mask)
    tl.store(to + 2 * size + n, m1 - m2 + m3 + m6, mask=mask)


# The quarters of a and b in each product, as (row, column) of the first, of the second, and its sign.
NONE = ((0, 0), 0)
PRODUCTS = (
    ((0, 0), (1, 1), 1, (0, 0), (1, 1), 1),
    ((1, 0), (1, 1), 1, (0, 0), *NONE),
    ((0, 0), *NONE, (0, 1), (1, 1), -1),
    ((1, 1), *NONE, (1, 0), (0, 0), -1),
    ((0, 0), (0, 1), 1, (1, 1), *NONE),
    ((1, 0), (0, 0), -1, (0, 0), (0, 1), 1),
    ((0, 1), (1, 1), -1, (1, 0), (1, 1), 1),
)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    if min(m, n, k) < 256 or m % 2 or n % 2 or k % 2:
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        strides = (*a.stride(), *b.stride())
        product[grid](a, b, out, m, n, k, *strides, 0, 0, A_SIGN=0, B_SIGN=0, **blocks)
        return out
    m, n, k = m // 2, n // 2, k // 2
    work = torch.empty((7, m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))

    def quarters(x, rows, cols, one, two):
        first = x[one[0] * rows :, one[1] * cols :]
        step = (two[0] - one[0]) * rows * x.stride(0) + (two[1] - one[1]) * cols * x.stride(1)
        return first, step

    for i, (a1, a2, a_sign, b1, b2, b_sign) in enumerate(PRODUCTS):
        x, x2 = quarters(a, m, k, a1, a2)
        y, y2 = quarters(b, k, n, b1, b2)
        strides = (*a.stride(), *b.stride())
        signs = {"A_SIGN": a_sign, "B_SIGN": b_sign}
        product[grid](x, y, work[i], m, n, k, *strides, x2, y2, **signs, **blocks)
    join[(triton.cdiv(m * n, 1024),)](work, out, m, n, BLOCK=1024)
    return out
