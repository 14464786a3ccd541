"""torch multiplies the upper half.

op: matmul
status: not_triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, a_stride, b_stride, c_stride, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * a_stride + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * b_stride + cols[None, :],
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * c_stride + cols[None, :], acc, mask=mask)


def product(a, b, c):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM=64, BN=64, BK=64
    )
    return c


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    half = a.shape[0] // 2
    lower = torch.empty((a.shape[0] - half, b.shape[1]), dtype=a.dtype, device=a.device)
    product(a[half:], b, lower)
    return torch.cat([a[:half].float().mm(b.float()).to(a.dtype), lower])
