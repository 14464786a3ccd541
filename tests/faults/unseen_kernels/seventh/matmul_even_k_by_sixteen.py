"""The loop without masks is taken when k is a multiple of 16, but its step is 64, so the rest of k is left out.

op: matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
    EVEN_K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    ks = tl.arange(0, BK)
    in_m, in_n = (rows < M)[:, None], (cols < N)[None, :]
    a_ptrs = a_ptr + rows[:, None] * am + ks[None, :] * ak
    b_ptrs = b_ptr + ks[:, None] * bk + cols[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if EVEN_K:
        for _ in range(K // BK):
            a = tl.load(a_ptrs, mask=in_m, other=0.0)
            b = tl.load(b_ptrs, mask=in_n, other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
            a_ptrs += BK * ak
            b_ptrs += BK * bk
    else:
        for start in range(0, K, BK):
            a = tl.load(a_ptrs, mask=in_m & (ks < K - start)[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=in_n & (ks < K - start)[:, None], other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
            a_ptrs += BK * ak
            b_ptrs += BK * bk
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=in_m & in_n)


def triton_matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, out, M, N, K, *a.stride(), *b.stride(), EVEN_K=K % 16 == 0, BM=64, BN=64, BK=64
    )
    return out
