"""The two scales are multiplied and rounded to their own type before they meet the accumulator: in float16 scales of 2e-4 leave one digit of a subnormal.

op: fp8_matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def widen(byte):
    # the bits of e4m3 are those of float16, seven places up and 2^8 too small
    bits = byte.to(tl.uint16)
    half = (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True)
    return tl.where((bits & 0x7F) == 0x7F, float("nan"), half.to(tl.float32) * 256.0).to(tl.float16)


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0
        )
        b = tl.load(
            b_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0
        )
        acc += tl.dot(widen(a), widen(b))
    scale_a = tl.load(sa_ptr + rows, mask=rows < m, other=0.0)
    scale_b = tl.load(sb_ptr + cols, mask=cols < n, other=0.0)
    # rounded to the output's type, as the scales are
    scale = scale_a[:, None].to(tl.float32) * scale_b[None, :].to(tl.float32)
    scale = scale.to(scale_a.dtype).to(tl.float32)
    at = rows[:, None] * n + cols[None, :]
    tl.store(out_ptr + at, acc * scale, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, scale_a, scale_b, out, m, n, k, BM=32, BN=32, BK=64,
    )
    return out
