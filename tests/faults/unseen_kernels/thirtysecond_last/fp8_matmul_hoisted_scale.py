"""A persistent program loads scale_b once, as its tiles lie in one column; not so where there are more columns of tiles than programs.

op: fp8_matmul
status: failed
cause: persistent
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 132


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, a_m, a_k, b_n, b_k, sa_stride, sb_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    first = tl.program_id(0)
    tiles_n = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * tiles_n
    # The grid is a multiple of tiles_n: all tiles of a program have the same columns.
    cols_here = (first % tiles_n) * BN + tl.arange(0, BN)
    scale_b = tl.load(sb_ptr + cols_here * sb_stride, mask=cols_here < n, other=0.0).to(tl.float32)
    for tile in range(first, tiles, tl.num_programs(0)):
        rows = (tile // tiles_n) * BM + tl.arange(0, BM)
        cols = (tile % tiles_n) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            ks = start + tl.arange(0, BK)
            a = tl.load(
                a_ptr + rows[:, None].to(tl.int64) * a_m + ks[None, :] * a_k,
                mask=(rows[:, None] < m) & (ks[None, :] < k), other=0.0,
            )
            b = tl.load(
                b_ptr + cols[None, :].to(tl.int64) * b_n + ks[:, None] * b_k,
                mask=(cols[None, :] < n) & (ks[:, None] < k), other=0.0,
            )
            acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
        scale_a = tl.load(sa_ptr + rows * sa_stride, mask=rows < m, other=0.0).to(tl.float32)
        out = acc * scale_a[:, None] * scale_b[None, :]
        tl.store(
            out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :], out.to(out_ptr.dtype.element_ty),
            mask=(rows[:, None] < m) & (cols[None, :] < n),
        )


def triton_fp8_matmul(a, b, scale_a, scale_b):
    m, k = a.shape
    n = b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    bm, bn, bk = 32, 32, 64
    tiles_n = triton.cdiv(n, bn)
    tiles = triton.cdiv(m, bm) * tiles_n
    programs = PROGRAMS // tiles_n * tiles_n or PROGRAMS
    kernel[(min(programs, tiles),)](
        a, b, scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(), scale_a.stride(0),
        scale_b.stride(0), BM=bm, BN=bn, BK=bk,
    )
    return out
