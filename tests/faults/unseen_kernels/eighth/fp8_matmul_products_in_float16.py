"""With up to 8 rows the products, exact in float16's mantissa, are formed in float16; past 65,504 they are infinite.

op: fp8_matmul
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def few_rows(a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + row * K + ks, mask=ks < K, other=0.0).to(tl.float16)
        b = tl.load(b_ptr + cols[:, None] * K + ks[None, :], mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0).to(tl.float16)
        acc += (a[None, :] * b).to(tl.float32)
    scale = tl.load(sa_ptr + row).to(tl.float32) * tl.load(sb_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, tl.sum(acc, axis=1) * scale, mask=cols < N)


@triton.jit
def many_rows(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0).to(tl.float16)
        b = tl.load(b_ptr + cols[None, :] * K + ks[:, None], mask=(cols < N)[None, :] & (ks < K)[:, None], other=0.0).to(tl.float16)
        acc += tl.dot(a, b)
    sa = tl.load(sa_ptr + rows, mask=rows < M, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * sa[:, None] * sb[None, :], mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = (x.contiguous() for x in (a, b, scale_a, scale_b))
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    if M <= 8:
        few_rows[(M, triton.cdiv(N, 32))](a, b, scale_a, scale_b, out, N, K, BN=32, BK=128)
    else:
        many_rows[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
            a, b, scale_a, scale_b, out, M, N, K, BM=64, BN=64, BK=64
        )
    return out
