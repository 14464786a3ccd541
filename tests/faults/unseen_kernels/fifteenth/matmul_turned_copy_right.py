"""A first kernel writes b transposed, from any strides; the product then reads both along k, with offsets of 64 bits.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def turn_kernel(b_ptr, turned_ptr, k, n, sbk, sbn, BK: tl.constexpr, BN: tl.constexpr):
    ks = (tl.program_id(0) * BK + tl.arange(0, BK)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    tile = tl.load(
        b_ptr + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0
    )
    tl.store(
        turned_ptr + cols[:, None] * k + ks[None, :], tl.trans(tile), mask=(cols < n)[:, None] & (ks < k)[None, :]
    )


@triton.jit
def kernel(
    a_ptr, turned_ptr, out_ptr, m, n, k, sam, sak, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32)
        b = tl.load(
            turned_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32)
        acc += tl.dot(a, tl.trans(b), input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if m == 0 or n == 0:
        return out
    turned = torch.empty((n, k), dtype=b.dtype, device=b.device)
    if k:
        turn_kernel[(triton.cdiv(k, 64), triton.cdiv(n, 64))](b, turned, k, n, *b.stride(), BK=64, BN=64)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, turned, out, m, n, k, *a.stride(), BM=32, BN=32, BK=32
    )
    return out
