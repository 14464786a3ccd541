"""float32 factors are scaled by the largest value of a row or column and split into two float16; beside an outlier the rest loses its bits.

op: matmul
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def largest_kernel(x_ptr, out_ptr, n, xr, xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc = tl.maximum(acc, tl.abs(tl.load(x_ptr + row * xr + cols * xc, mask=cols < n, other=0.0)))
    largest = tl.max(acc, axis=0)
    tl.store(out_ptr + row, tl.where(largest > 0.0, largest, 1.0))


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, ascale_ptr, bscale_ptr, M, N, K, am, ak, bk, bn,
    SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if SPLIT:
        ascale = tl.load(ascale_ptr + rows, mask=rows < M, other=1.0)
        bscale = tl.load(bscale_ptr + cols, mask=cols < N, other=1.0)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        if SPLIT:  # tensor cores of float16, three times: 22 bits
            a = a / ascale[:, None]
            b = b / bscale[None, :]
            a_high, b_high = a.to(tl.float16), b.to(tl.float16)
            a_low = (a - a_high.to(tl.float32)).to(tl.float16)
            b_low = (b - b_high.to(tl.float32)).to(tl.float16)
            acc += tl.dot(a_low, b_high) + tl.dot(a_high, b_low)
            acc += tl.dot(a_high, b_high)
        else:
            acc += tl.dot(a, b)
    if SPLIT:
        acc = acc * ascale[:, None] * bscale[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    split = a.dtype == torch.float32
    ascale = torch.empty(M, dtype=torch.float32, device=a.device)
    bscale = torch.empty(N, dtype=torch.float32, device=a.device)
    if split:
        largest_kernel[(M,)](a, ascale, K, a.stride(0), a.stride(1), BLOCK=256)
        largest_kernel[(N,)](b, bscale, K, b.stride(1), b.stride(0), BLOCK=256)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, c, ascale, bscale, M, N, K, *a.stride(), *b.stride(), SPLIT=split, BM=64, BN=64, BK=32
    )
    return c
