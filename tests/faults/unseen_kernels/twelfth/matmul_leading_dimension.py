"""The leading dimension is the larger stride of a factor: a factor whose rows are one expanded row has strides 0 and 1, and is read with a step of 1.

op: matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb,
    TA: tl.constexpr, TB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        if TA:
            a_at = rows[:, None] + ks[None, :] * lda
        else:
            a_at = rows[:, None] * lda + ks[None, :]
        if TB:
            b_at = ks[:, None] + cols[None, :] * ldb
        else:
            b_at = ks[:, None] * ldb + cols[None, :]
        a = tl.load(a_ptr + a_at, mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + b_at, mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def as_blas(x):
    if 1 not in x.stride():
        x = x.contiguous()
    return x, x.stride(0) == 1, max(x.stride())


def triton_matmul(a, b):
    (a, a_is_t, lda), (b, b_is_t, ldb) = as_blas(a), as_blas(b)
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        a, b, c, M, N, K, lda, ldb, TA=a_is_t, TB=b_is_t, BM=32, BN=32, BK=64
    )
    return c
