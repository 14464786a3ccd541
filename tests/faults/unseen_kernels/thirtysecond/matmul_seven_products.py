"""Strassen's seven products for eight, in float32: rows and columns of small values lose their digits beside large ones.

op: matmul
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile(ptr, rows, cols, n_rows, n_cols, row_stride, col_stride):
    mask = (rows[:, None] < n_rows) & (cols[None] < n_cols)
    places = rows.to(tl.int64)[:, None] * row_stride + cols.to(tl.int64)[None] * col_stride
    return tl.load(ptr + places, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def write(ptr, value, rows, cols, m, n):
    mask = (rows[:, None] < m) & (cols[None] < n)
    tl.store(ptr + rows.to(tl.int64)[:, None] * n + cols[None], value, mask=mask)


@triton.jit
def product(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn,
    H: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """A tile of 2H x 2H, its quarters from seven products of quarters of the operands."""
    top = tl.program_id(0) * 2 * H + tl.arange(0, H)
    left = tl.program_id(1) * 2 * H + tl.arange(0, H)
    low, right = top + H, left + H
    c11 = tl.zeros((H, H), dtype=tl.float32)
    c12 = tl.zeros((H, H), dtype=tl.float32)
    c21 = tl.zeros((H, H), dtype=tl.float32)
    c22 = tl.zeros((H, H), dtype=tl.float32)
    for start in range(0, k, 2 * K):
        one = start + tl.arange(0, K)
        two = one + K
        a11 = tile(a_ptr, top, one, m, k, am, ak)
        a12 = tile(a_ptr, top, two, m, k, am, ak)
        a21 = tile(a_ptr, low, one, m, k, am, ak)
        a22 = tile(a_ptr, low, two, m, k, am, ak)
        b11 = tile(b_ptr, one, left, k, n, bk, bn)
        b12 = tile(b_ptr, one, right, k, n, bk, bn)
        b21 = tile(b_ptr, two, left, k, n, bk, bn)
        b22 = tile(b_ptr, two, right, k, n, bk, bn)
        p = tl.dot(a11 + a22, b11 + b22, input_precision="ieee")
        c11 += p
        c22 += p
        p = tl.dot(a21 + a22, b11, input_precision="ieee")
        c21 += p
        c22 -= p
        p = tl.dot(a11, b12 - b22, input_precision="ieee")
        c12 += p
        c22 += p
        p = tl.dot(a22, b21 - b11, input_precision="ieee")
        c11 += p
        c21 += p
        p = tl.dot(a11 + a12, b22, input_precision="ieee")
        c11 -= p
        c12 += p
        c22 += tl.dot(a21 - a11, b11 + b12, input_precision="ieee")
        c11 += tl.dot(a12 - a22, b21 + b22, input_precision="ieee")
    write(out_ptr, c11, top, left, m, n)
    write(out_ptr, c12, top, right, m, n)
    write(out_ptr, c21, low, left, m, n)
    write(out_ptr, c22, low, right, m, n)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    product[grid](a, b, out, m, n, k, *a.stride(), *b.stride(), H=32, K=16)
    return out
