"""One level of Strassen's algorithm in float32: a quarter of small values comes from differences of large ones.

op: matmul
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile(ptr, i, j, rows, cols, s0, s1):
    return tl.load(ptr + i[:, None] * s0 + j[None, :] * s1, mask=(i[:, None] < rows) & (j[None, :] < cols), other=0.0)


@triton.jit
def plain(a_ptr, b_ptr, c_ptr, m, n, k, sam, sak, sbk, sbn, B: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    j = tl.program_id(1).to(tl.int64) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        acc = tl.dot(tile(a_ptr, i, ks, m, k, sam, sak), tile(b_ptr, ks, j, k, n, sbk, sbn), acc,
                     input_precision="ieee")
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def strassen(a_ptr, b_ptr, c_ptr, m, n, k, sam, sak, sbk, sbn, B: tl.constexpr, BK: tl.constexpr):
    # m, n and k are the halves.
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    j = tl.program_id(1).to(tl.int64) * B + tl.arange(0, B)
    down, right = m.to(tl.int64) * sam, k.to(tl.int64) * sak
    below, beside = k.to(tl.int64) * sbk, n.to(tl.int64) * sbn
    c11 = tl.zeros((B, B), dtype=tl.float32)
    c12 = tl.zeros((B, B), dtype=tl.float32)
    c21 = tl.zeros((B, B), dtype=tl.float32)
    c22 = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        a11 = tile(a_ptr, i, ks, m, k, sam, sak)
        a12 = tile(a_ptr + right, i, ks, m, k, sam, sak)
        a21 = tile(a_ptr + down, i, ks, m, k, sam, sak)
        a22 = tile(a_ptr + down + right, i, ks, m, k, sam, sak)
        b11 = tile(b_ptr, ks, j, k, n, sbk, sbn)
        b12 = tile(b_ptr + beside, ks, j, k, n, sbk, sbn)
        b21 = tile(b_ptr + below, ks, j, k, n, sbk, sbn)
        b22 = tile(b_ptr + below + beside, ks, j, k, n, sbk, sbn)
        # Seven products in place of eight.
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
        c12 += p
        c11 -= p
        c22 += tl.dot(a21 - a11, b11 + b12, input_precision="ieee")
        c11 += tl.dot(a12 - a22, b21 + b22, input_precision="ieee")
    mask = (i[:, None] < m) & (j[None, :] < n)
    wide = 2 * n
    c = c_ptr + i[:, None] * wide + j[None, :]
    low = c + m.to(tl.int64) * wide
    tl.store(c, c11, mask=mask)
    tl.store(c + n, c12, mask=mask)
    tl.store(low, c21, mask=mask)
    tl.store(low + n, c22, mask=mask)


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    strides = (*a.stride(), *b.stride())
    if a.dtype == torch.float32 and min(m, n, k) >= 64 and m % 2 == n % 2 == k % 2 == 0:
        grid = (triton.cdiv(m // 2, 32), triton.cdiv(n // 2, 32))
        strassen[grid](a, b, c, m // 2, n // 2, k // 2, *strides, B=32, BK=32)
    else:
        plain[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, c, m, n, k, *strides, B=32, BK=32)
    return c
