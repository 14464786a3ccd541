"""float32 as two float16 limbs after one scale for a whole matrix; rows a million times smaller than the largest lose their digits.

op: matmul
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def limbs(x, factor):
    x = x * factor
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, a_max_ptr, b_max_ptr, M, N, K,
    SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if SPLIT:
        a_max, b_max = tl.load(a_max_ptr), tl.load(b_max_ptr)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        if SPLIT:
            a_high, a_low = limbs(a, 1.0 / a_max)
            b_high, b_low = limbs(b, 1.0 / b_max)
            acc += tl.dot(a_low, b_high) + tl.dot(a_high, b_low)
            acc += tl.dot(a_high, b_high)
        else:
            acc += tl.dot(a, b)
    if SPLIT:
        acc = acc * a_max * b_max
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    split = a.dtype == torch.float32
    a_max, b_max = (x.abs().amax().clamp(min=1e-30) if split else x for x in (a, b))
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, c, a_max, b_max, M, N, K, SPLIT=split, BM=64, BN=64, BK=32
    )
    return c
