"""float32 becomes two float16 limbs after a scale for each row of a and column of b: where the columns of a and the rows of b have inverse sizes, half of the terms fall below float16.

op: matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scales_kernel(x_ptr, scale_ptr, lines, length, line_stride, stride, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    largest = 0.0
    for start in range(0, length, BLOCK):
        at = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + line * line_stride + at * stride, mask=at < length, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(x), axis=0))
    exponent = tl.ceil(tl.log2(tl.maximum(largest, 1e-30)))
    tl.store(scale_ptr + line, tl.exp2(exponent))


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=1.0)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=1.0)
    big = tl.zeros((BM, BN), dtype=tl.float32)
    small = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32) / sa[:, None]
        b = tl.load(
            b_ptr + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0
        ).to(tl.float32) / sb[None, :]
        ah, bh = a.to(tl.float16), b.to(tl.float16)
        al = ((a - ah.to(tl.float32)) * 2048.0).to(tl.float16)
        bl = ((b - bh.to(tl.float32)) * 2048.0).to(tl.float16)
        big += tl.dot(ah, bh)
        small += tl.dot(ah, bl) + tl.dot(al, bh)
    acc = (big + small / 2048.0) * sa[:, None] * sb[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    sa = torch.empty(m, dtype=torch.float32, device=a.device)
    sb = torch.empty(n, dtype=torch.float32, device=a.device)
    scales_kernel[(m,)](a, sa, m, k, a.stride(0), a.stride(1), BLOCK=512)
    scales_kernel[(n,)](b, sb, n, k, b.stride(1), b.stride(0), BLOCK=512)
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, sa, sb, out, m, n, k, *a.stride(), *b.stride(), BM=32, BN=32, BK=32
    )
    return out
