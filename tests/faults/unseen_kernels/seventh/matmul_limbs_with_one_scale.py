"""float32 in two float16 limbs, scaled by the largest of the whole matrix: rows or columns of much smaller numbers lose their bits.

op: matmul
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def largest_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.atomic_max(out_ptr, tl.max(tl.abs(x), axis=0))


@triton.jit
def kernel(a_ptr, b_ptr, a_max_ptr, b_max_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    a_max = tl.maximum(tl.load(a_max_ptr), 1e-30)
    b_max = tl.maximum(tl.load(b_max_ptr), 1e-30)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0).to(tl.float32) / a_max
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :],
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0).to(tl.float32) / b_max
        a_high, b_high = a.to(tl.float16), b.to(tl.float16)
        a_low = (a - a_high.to(tl.float32)).to(tl.float16)
        b_low = (b - b_high.to(tl.float32)).to(tl.float16)
        acc += tl.dot(a_low, b_high) + tl.dot(a_high, b_low)
        acc += tl.dot(a_high, b_high)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc * a_max * b_max, mask=mask)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    largest = torch.zeros(2, dtype=torch.float32, device=a.device)
    largest_kernel[(triton.cdiv(a.numel(), 4096),)](a, largest, a.numel(), BLOCK=4096)
    largest_kernel[(triton.cdiv(b.numel(), 4096),)](b, largest[1:], b.numel(), BLOCK=4096)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, largest, largest[1:], out, M, N, K, BM=64, BN=64, BK=32)
    return out
