"""float32 is split into two float16, scaled by a power of two for each row of a and each column of b.

op: matmul
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def peak_kernel(x_ptr, scale_ptr, n, xr, xc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    peak = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * xr + cols * xc, mask=cols < n, other=0.0)
        peak = tl.maximum(peak, tl.abs(x))
    # The exponent of the largest number, as that of a power of two between 2**-100 and 2**100.
    exponent = (tl.max(peak, axis=0).to(tl.int32, bitcast=True) >> 23) + 1
    exponent = tl.minimum(tl.maximum(exponent, 27), 227)
    tl.store(scale_ptr + row, (exponent << 23).to(tl.float32, bitcast=True))


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N, K, am, ak, bk, bn, SPLIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    small = tl.zeros((BM, BN), dtype=tl.float32)
    if SPLIT:
        a_scale = tl.load(a_scale_ptr + rows, mask=rows < M, other=1.0)[:, None]
        b_scale = tl.load(b_scale_ptr + cols, mask=cols < N, other=1.0)[None, :]
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        if SPLIT:
            a, b = a / a_scale, b / b_scale
            a_high, b_high = a.to(tl.float16), b.to(tl.float16)
            a_low = ((a - a_high.to(tl.float32)) * 2048.0).to(tl.float16)
            b_low = ((b - b_high.to(tl.float32)) * 2048.0).to(tl.float16)
            small += tl.dot(a_low, b_high) + tl.dot(a_high, b_low)
            small += tl.dot(a_low, b_low) * 0.00048828125
            acc += tl.dot(a_high, b_high)
        else:
            acc += tl.dot(a, b)
    if SPLIT:
        acc = (acc + small * 0.00048828125) * a_scale * b_scale
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    is_split = a.dtype == torch.float32
    a_scale, b_scale = (torch.empty(n, dtype=torch.float32, device=a.device) for n in (M, N))
    if is_split:
        peak_kernel[(M,)](a, a_scale, K, a.stride(0), a.stride(1), BLOCK=256)
        peak_kernel[(N,)](b, b_scale, K, b.stride(1), b.stride(0), BLOCK=256)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    kernel[grid](
        a, b, c, a_scale, b_scale, M, N, K, *a.stride(), *b.stride(), SPLIT=is_split,
        BM=32, BN=32, BK=32,
    )
    return c
