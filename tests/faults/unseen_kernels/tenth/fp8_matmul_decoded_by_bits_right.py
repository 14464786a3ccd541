"""float8 is decoded by a shift and a product with a power of two, which holds for subnormal numbers too.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decoded(bits):
    bits = bits.to(tl.int32)
    magnitude, negative = bits & 0x7F, bits > 0x7F
    number = (magnitude << 20).to(tl.float32, bitcast=True) * 1.329227995784916e36
    number = tl.where(magnitude == 0x7F, float("nan"), number)
    return tl.where(negative, -number, number)


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None].to(tl.int64) * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0)
        b = tl.load(b_ptr + cols[None, :].to(tl.int64) * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc += tl.dot(decoded(a), decoded(b), input_precision="ieee")
    scale_a = tl.load(sa_ptr + rows, mask=rows < M, other=0.0).to(tl.float32)
    scale_b = tl.load(sb_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    acc = acc * scale_a[:, None] * scale_b[None, :]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * N + cols[None, :], acc, mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    a, b = (x.contiguous().view(torch.uint8) for x in (a, b))
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
        a, b, scale_a.contiguous(), scale_b.contiguous(), out, M, N, K, BM=32, BN=32, BK=64
    )
    return out
