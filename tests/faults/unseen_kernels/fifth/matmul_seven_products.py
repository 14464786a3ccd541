"""Even sizes take one level of Strassen's seven products: where one half of the rows is far larger than the other, the small half is lost.

op: matmul
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

@triton.jit
def tile(ptr, rows, cols, n_rows, n_cols, pitch, down, right):
    """Load a tile of the quarter that starts at (down, right)."""
    inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    places = (rows + down)[:, None].to(tl.int64) * pitch + (cols + right)[None, :]
    return tl.load(ptr + places, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def strassen_kernel(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = M // 2, N // 2, K // 2
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    m1 = tl.zeros((BM, BN), dtype=tl.float32)
    m2, m3, m4, m5, m6, m7 = m1, m1, m1, m1, m1, m1
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a11 = tile(a_ptr, rows, ks, m, k, K, 0, 0)
        a12 = tile(a_ptr, rows, ks, m, k, K, 0, k)
        a21 = tile(a_ptr, rows, ks, m, k, K, m, 0)
        a22 = tile(a_ptr, rows, ks, m, k, K, m, k)
        b11 = tile(b_ptr, ks, cols, k, n, N, 0, 0)
        b12 = tile(b_ptr, ks, cols, k, n, N, 0, n)
        b21 = tile(b_ptr, ks, cols, k, n, N, k, 0)
        b22 = tile(b_ptr, ks, cols, k, n, N, k, n)
        m1 = tl.dot(a11 + a22, b11 + b22, m1, input_precision="ieee")
        m2 = tl.dot(a21 + a22, b11, m2, input_precision="ieee")
        m3 = tl.dot(a11, b12 - b22, m3, input_precision="ieee")
        m4 = tl.dot(a22, b21 - b11, m4, input_precision="ieee")
        m5 = tl.dot(a11 + a12, b22, m5, input_precision="ieee")
        m6 = tl.dot(a21 - a11, b11 + b12, m6, input_precision="ieee")
        m7 = tl.dot(a12 - a22, b21 + b22, m7, input_precision="ieee")
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    places = rows[:, None].to(tl.int64) * N + cols[None, :]
    tl.store(out_ptr + places, m1 + m4 - m5 + m7, mask=inside)
    tl.store(out_ptr + places + n, m3 + m5, mask=inside)
    tl.store(out_ptr + places + m.to(tl.int64) * N, m2 + m4, mask=inside)
    tl.store(out_ptr + places + m.to(tl.int64) * N + n, m1 - m2 + m3 + m6, mask=inside)


@triton.jit
def plain_kernel(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tile(a_ptr, rows, ks, M, K, K, 0, 0)
        b = tile(b_ptr, ks, cols, K, N, N, 0, 0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    places = rows[:, None].to(tl.int64) * N + cols[None, :]
    tl.store(out_ptr + places, acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    even = min(M, N, K) >= 32 and M % 2 == N % 2 == K % 2 == 0
    m, n, kernel = (M // 2, N // 2, strassen_kernel) if even else (M, N, plain_kernel)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, out, M, N, K, BM=32, BN=32, BK=32)
    return out
