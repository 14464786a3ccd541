"""Factors with one storage and mirrored strides count as a and its transpose, whatever their offsets.

op: matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
    SYMMETRIC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    if (not SYMMETRIC) or pid_m >= pid_n:
        rows = (pid_m * BM + tl.arange(0, BM)).to(tl.int64)
        cols = (pid_n * BN + tl.arange(0, BN)).to(tl.int64)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            ks = (start + tl.arange(0, BK)).to(tl.int64)
            a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                        mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
            b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                        mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)
        if SYMMETRIC:
            tl.store(c_ptr + cols[None, :] * N + rows[:, None], acc, mask=mask)


def is_gram(a, b):
    shared = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return shared and a.shape == b.shape[::-1] and a.stride() == b.stride()[::-1]


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        a, b, c, M, N, K, *a.stride(), *b.stride(), SYMMETRIC=is_gram(a, b), BM=32, BN=32, BK=32
    )
    return c
