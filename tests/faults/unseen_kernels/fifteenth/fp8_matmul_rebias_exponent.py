"""The bytes become float32 by a shift and another bias of the exponent: right for normal numbers and zero, but subnormal ones get an implicit one.

op: fp8_matmul
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decode(bits):
    bits = bits.to(tl.int32)
    size = bits & 0x7F
    value = ((size << 20) + (120 << 23)).to(tl.float32, bitcast=True)
    value = tl.where(size == 0, 0.0, value)
    return tl.where((bits & 0x80) != 0, -value, value)


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0)
        b = tl.load(b_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & (ks < k)[None, :], other=0)
        acc += tl.dot(decode(a), tl.trans(decode(b)), input_precision="ieee")
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    acc = acc * sa[:, None] * sb[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, scale_a, scale_b, out, m, n, k, BM=32, BN=32, BK=32
    )
    return out
