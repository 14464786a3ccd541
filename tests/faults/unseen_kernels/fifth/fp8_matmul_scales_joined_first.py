"""The two scales are multiplied in their own dtype before the product: in float16 two scales of 1e-4 give zero.

op: fp8_matmul
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - group * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    rows = ((group * GROUP + within % height) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (within // height * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0.0)
        acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < M, other=0.0)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < N, other=0.0)
    if scale_a.dtype == tl.bfloat16:
        acc *= scale_a.to(tl.float32)[:, None] * scale_b.to(tl.float32)[None, :]
    else:  # float16 has the bits: one product of halves, then one a number
        acc *= scale_a[:, None] * scale_b[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous(), b.contiguous()
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32),)
    kernel[grid](a, b, scale_a, scale_b, out, M, N, K, BM=32, BN=32, BK=64, GROUP=4)
    return out
