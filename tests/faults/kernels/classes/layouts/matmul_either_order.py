"""A matrix is taken for row-major unless its first stride is one, so a column step is lost.

op: matmul
status: failed
cause: wrong_stride
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, A_T: tl.constexpr, B_T: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK).to(tl.int64)
        a_places = ks[None, :] * lda + rows[:, None] if A_T else rows[:, None] * lda + ks[None, :]
        b_places = cols[None, :] * ldb + ks[:, None] if B_T else ks[:, None] * ldb + cols[None, :]
        a = tl.load(a_ptr + a_places, mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + b_places, mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def order(x):
    if x.stride(0) == 1 and x.stride(1) >= x.shape[0]:
        return x.stride(1), True
    return x.stride(0), False


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    lda, a_t = order(a)
    ldb, b_t = order(b)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    kernel[grid](a, b, c, M, N, K, lda, ldb, A_T=a_t, B_T=b_t, BM=32, BN=32, BK=32)
    return c
