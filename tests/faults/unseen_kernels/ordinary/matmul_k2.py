"""With K split in 2, each step moves the pointers by BK * SPLIT but the mask of k takes off i * BK only, so the last steps read past the end of K (the next row of a, rows past b).

It shows at (m, n, k) = (65, 127, 129), float32.

op: matmul
status: failed
cause: mask
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.program_id(2) * BK + tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * N + cols[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK * SPLIT)):
        left = K - i * BK
        a = tl.load(a_ptrs, mask=(rows < M)[:, None] & (ks < left)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(ks < left)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
        a_ptrs += BK * SPLIT
        b_ptrs += BK * SPLIT * N
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), (_, N) = a.shape, b.shape
    c = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64), 2)
    kernel[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32, SPLIT=2)
    return c.to(a.dtype)
