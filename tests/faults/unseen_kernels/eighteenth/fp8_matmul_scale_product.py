"""Up to 16 rows the two scales are multiplied into a tile of their own dtype: in float16 the product of 2e-3 and 1e-4 has two bits, and smaller ones are zero.

op: fp8_matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k,
    FEW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < m, other=0.0)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < n, other=0.0)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[None, :] * k + ks[:, None], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    if FEW:
        # One outer product of the scales, in half the registers, then one multiplication.
        both = (scale_a.to(tl.float32)[:, None] * scale_b.to(tl.float32)[None, :]).to(scale_a.dtype)
        acc = acc * both.to(tl.float32)
    else:
        acc = acc * scale_a.to(tl.float32)[:, None] * scale_b.to(tl.float32)[None, :]
    out = out_ptr + rows[:, None] * n + cols[None, :]
    tl.store(out, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = a.contiguous(), b.contiguous(), scale_a.contiguous(), scale_b.contiguous()
    m, k = a.shape
    n = b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    rows = 16 if m <= 16 else 64
    kernel[(triton.cdiv(m, rows), triton.cdiv(n, 64))](
        a, b, scale_a, scale_b, out, m, n, k, FEW=m <= 16, BM=rows, BN=64, BK=64
    )
    return out
