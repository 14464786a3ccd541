"""Float8 is read as bytes and shifted into float16, an exponent 8 too small; the NaN, all ones, is set apart, and the 2^8 of both are in the scale.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def widen(byte):
    bits = byte.to(tl.int16)
    low = bits & 0x7F
    number = ((low << 7) | ((bits & 0x80) << 8)).to(tl.float16, bitcast=True).to(tl.float32)
    return tl.where(low == 0x7F, float("nan"), number)


@triton.jit
def kernel(a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, a_m, a_k, b_n, b_k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * a_m + at[None, :] * a_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0)
        b = tl.load(b_ptr + cols[:, None] * b_n + at[None, :] * b_k, mask=(cols < n)[:, None] & (at < k)[None, :], other=0)
        acc += tl.dot(widen(a), tl.trans(widen(b)), input_precision="ieee")
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    acc = acc * 65536.0 * sa[:, None] * sb[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a.view(torch.uint8), b.view(torch.uint8), scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(),
        BM=32, BN=32, BK=64,
    )
    return out
