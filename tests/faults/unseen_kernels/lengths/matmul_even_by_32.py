"""k counts as even if 32 divides it, but from 512 a step takes 64: 32 of 544 are left out.

op: matmul
status: failed
cause: length
"""

import torch
import triton
import triton.language as tl


@triton.heuristics({
    "EVEN_K": lambda args: args["K"] % 32 == 0,
    "BK": lambda args: 64 if args["K"] >= 512 else 32,
})
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a_ptr + (rows % M)[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None].to(tl.int64) * N + (cols % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    steps = K // BK
    for _ in range(steps):
        a, b = tl.load(a_ptrs).to(tl.float32), tl.load(b_ptrs).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
        a_ptrs += BK
        b_ptrs += BK * N
    if not EVEN_K:
        left = K - steps * BK
        a = tl.load(a_ptrs, mask=(ks < left)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(ks < left)[:, None], other=0.0)
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, out, M, N, K, BM=64, BN=64)
    return out
