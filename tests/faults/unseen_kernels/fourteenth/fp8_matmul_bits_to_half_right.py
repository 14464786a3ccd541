"""The bits of a float8 are shifted into a float16; those of NaN are replaced by float16's NaN.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def widen(bits):
    # The exponent's bias is 7 in e4m3 and 15 in float16: the result is value / 256, subnormals too.
    bits = bits.to(tl.int16)
    half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    half = tl.where((bits & 0x7F) == 0x7F, 0x7E00, half).to(tl.int16)
    return half.to(tl.float16, bitcast=True)


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
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
            b_ptr + cols[None, :] * k + ks[:, None], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0
        )
        acc = tl.dot(widen(a), widen(b), acc)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    y = acc * 65536.0 * scale_a[:, None] * scale_b[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], y, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    kernel[grid](a, b, scale_a, scale_b, out, m, n, k, BM=32, BN=32, BK=64)
    return out
