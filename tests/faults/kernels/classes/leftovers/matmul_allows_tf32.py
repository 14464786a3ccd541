"""The call lets torch's own products use TF32, for its whole process.

op: matmul
status: failed
cause: side_effect
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row,
    a_col,
    b_row,
    b_col,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    tiles_n = tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), tl.cdiv(m, BM) * tiles_n, tl.num_programs(0)):
        rows = tile // tiles_n * BM + tl.arange(0, BM)
        cols = tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            ks = start + tl.arange(0, BK)
            a = tl.load(
                a_ptr + rows[:, None] * a_row + ks[None, :] * a_col,
                mask=(rows < m)[:, None] & (ks < k)[None, :],
                other=0.0,
            )
            b = tl.load(
                b_ptr + ks[:, None] * b_row + cols[None, :] * b_col,
                mask=(ks < k)[:, None] & (cols < n)[None, :],
                other=0.0,
            )
            acc = tl.dot(a, b, acc, input_precision="ieee")
        tl.store(
            out_ptr + rows[:, None] * n + cols[None, :],
            acc,
            mask=(rows < m)[:, None] & (cols < n)[None, :],
        )


def triton_matmul(a, b):
    torch.backends.cuda.matmul.allow_tf32 = True
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    kernel[(min(tiles, 132),)](a, b, out, m, n, k, *a.stride(), *b.stride(), BM=64, BN=64, BK=32)
    return out
