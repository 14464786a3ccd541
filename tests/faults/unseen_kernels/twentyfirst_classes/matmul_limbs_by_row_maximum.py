"""Each row of a and column of b is divided by its largest value and split into two float16 limbs: a part of k at 1e-8 of the largest is lost, though b is large there.

op: matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    a_top = tl.zeros((BM,), dtype=tl.float32)
    b_top = tl.zeros((BN,), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * n + cols[None, :], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        a_top = tl.maximum(a_top, tl.max(tl.abs(a.to(tl.float32)), axis=1))
        b_top = tl.maximum(b_top, tl.max(tl.abs(b.to(tl.float32)), axis=0))
    a_top = tl.where(a_top == 0.0, 1.0, a_top)
    b_top = tl.where(b_top == 0.0, 1.0, b_top)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * n + cols[None, :], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        a = a.to(tl.float32) / a_top[:, None]
        b = b.to(tl.float32) / b_top[None, :]
        a_high = a.to(tl.float16)
        b_high = b.to(tl.float16)
        a_low = (a - a_high.to(tl.float32)).to(tl.float16)
        b_low = (b - b_high.to(tl.float32)).to(tl.float16)
        acc += tl.dot(a_low, b_high)
        acc += tl.dot(a_high, b_low)
        acc += tl.dot(a_high, b_high)
    out = acc * a_top[:, None] * b_top[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, out, m, n, k, BM=32, BN=32, BK=32)
    return out
