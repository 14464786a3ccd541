"""A factor whose columns are contiguous is read as if they followed each other without gaps.

op: matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    cols = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k_a = start + tl.arange(0, BK)[None, :]
        k_b = start + tl.arange(0, BK)[:, None]
        if A_COLUMNS:
            a_at = a_ptr + rows + k_a * lda
        else:
            a_at = a_ptr + rows * lda + k_a
        if B_COLUMNS:
            b_at = b_ptr + k_b + cols * ldb
        else:
            b_at = b_ptr + k_b * ldb + cols
        a = tl.load(a_at, mask=(rows < M) & (k_a < K), other=0.0)
        b = tl.load(b_at, mask=(k_b < K) & (cols < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


def as_blas_takes_it(x):
    """Return the matrix, its leading dimension and whether it is stored by columns; a copy if by neither."""
    if not x.is_contiguous() and x.stride(0) == 1:
        return x, x.shape[0], True
    return x.contiguous(), x.shape[1], False


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    a, lda, a_columns = as_blas_takes_it(a)
    b, ldb, b_columns = as_blas_takes_it(b)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, c, M, N, K, lda, ldb, a_columns, b_columns, BM=64, BN=64, BK=64
    )
    return c
