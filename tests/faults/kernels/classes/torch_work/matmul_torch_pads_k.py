"""Torch copies the matrices into padded ones; the kernel multiplies whole blocks.

op: matmul
status: passed
held_out: yes
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, KP, NP, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, KP, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * KP + ks[None, :])
        b = tl.load(b_ptr + ks[:, None] * NP + cols[None, :])
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def padded(x):
    n_rows, n_cols = (triton.cdiv(n, 32) * 32 for n in x.shape)
    wide = torch.zeros((n_rows, n_cols), dtype=x.dtype, device=x.device)
    wide[: x.shape[0], : x.shape[1]].copy_(x)
    return wide


def triton_matmul(a, b):
    (M, _), N = a.shape, b.shape[1]
    a, b = padded(a), padded(b)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    kernel[grid](a, b, c, M, N, a.shape[1], b.shape[1], BM=32, BN=32, BK=32)
    return c
