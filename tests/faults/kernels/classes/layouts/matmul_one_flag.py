"""One flag says for both factors whether they are transposed.

op: matmul
status: failed
cause: wrong_stride
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    transposed = a.stride(0) == 1 and a.stride(1) == M and M > 1
    if transposed:
        strides = (1, M, 1, K)
    else:
        a, b = a.contiguous(), b.contiguous()
        strides = (K, 1, N, 1)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    kernel[grid](a, b, c, M, N, K, *strides, BM=64, BN=64, BK=32)
    return c
