"""float32 is split into two float16 of no scale: infinite past 65,504, few bits below 1e-3.

op: matmul
status: failed
cause: overflow
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, SPLIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        if SPLIT:
            a_high, b_high = a.to(tl.float16), b.to(tl.float16)
            a_low = (a - a_high.to(tl.float32)).to(tl.float16)
            b_low = (b - b_high.to(tl.float32)).to(tl.float16)
            acc += tl.dot(a_low, b_high)
            acc += tl.dot(a_high, b_low)
            acc += tl.dot(a_high, b_high)
        else:
            acc += tl.dot(a, b)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), SPLIT=a.dtype == torch.float32,
        BM=32, BN=32, BK=32,
    )
    return c
