"""The product of a and its transpose is computed by half, if address and swapped strides show that it is one.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def general(
    a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32)
        b = tl.load(
            b_ptr + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0
        ).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def gram(a_ptr, out_ptr, m, k, sam, sak, B: tl.constexpr, BK: tl.constexpr):
    """a @ a^T is symmetric: the tiles on and below the diagonal are computed and stored twice."""
    i = tl.program_id(0)
    j = tl.program_id(1)
    if j <= i:
        rows = i * B + tl.arange(0, B)
        cols = j * B + tl.arange(0, B)
        acc = tl.zeros((B, B), dtype=tl.float32)
        for start in range(0, k, BK):
            ks = start + tl.arange(0, BK)
            left = tl.load(
                a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
            ).to(tl.float32)
            right = tl.load(
                a_ptr + cols[:, None] * sam + ks[None, :] * sak, mask=(cols < m)[:, None] & (ks < k)[None, :], other=0.0
            ).to(tl.float32)
            acc += tl.dot(left, tl.trans(right), input_precision="ieee")
        inside = (rows < m)[:, None] & (cols < m)[None, :]
        tl.store(out_ptr + rows[:, None] * m + cols[None, :], acc, mask=inside)
        tl.store(out_ptr + cols[None, :] * m + rows[:, None], acc, mask=inside)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty(m, n, dtype=a.dtype, device=a.device)
    if a.data_ptr() == b.data_ptr() and m == n and a.stride() == b.stride()[::-1]:
        tiles = triton.cdiv(m, 32)
        gram[(tiles, tiles)](a, out, m, k, *a.stride(), B=32, BK=32)
    else:
        general[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
            a, b, out, m, n, k, *a.stride(), *b.stride(), BM=32, BN=32, BK=32
        )
    return out
