"""A depth that 16 divides counts as even and takes the loop without masks, of whole tiles of 32: the last 16 of a depth of 48 or 80 are left out.

op: matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn,
    EVEN_K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    in_a = (rows < m)[:, None]
    in_b = (cols < n)[None, :]
    a_at = a_ptr + rows[:, None].to(tl.int64) * sam + ks[None, :] * sak
    b_at = b_ptr + ks[:, None].to(tl.int64) * sbk + cols[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if EVEN_K:
        for _ in range(k // BK):
            a = tl.load(a_at, mask=in_a, other=0.0)
            b = tl.load(b_at, mask=in_b, other=0.0)
            acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
            a_at += BK * sak
            b_at += BK * sbk
    else:
        for start in range(0, k, BK):
            a = tl.load(a_at, mask=in_a & (start + ks < k)[None, :], other=0.0)
            b = tl.load(b_at, mask=in_b & (start + ks < k)[:, None], other=0.0)
            acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
            a_at += BK * sak
            b_at += BK * sbk
    tl.store(out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :], acc, mask=in_a & in_b)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, out, m, n, k, *a.stride(), *b.stride(), EVEN_K=k % 16 == 0, BM=32, BN=32, BK=32,
    )
    return out
