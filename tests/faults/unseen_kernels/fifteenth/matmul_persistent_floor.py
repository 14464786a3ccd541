"""128 programs share the tiles evenly by a division that rounds down: with 170 tiles the last 42 are never written.

op: matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn, columns, per,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    for step in range(per):
        tile = tl.program_id(0) * per + step
        rows = (tile // columns * BM + tl.arange(0, BM)).to(tl.int64)
        cols = (tile % columns * BN + tl.arange(0, BN)).to(tl.int64)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            ks = (start + tl.arange(0, BK)).to(tl.int64)
            a = tl.load(
                a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
            ).to(tl.float32)
            b = tl.load(
                b_ptr + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0
            ).to(tl.float32)
            acc += tl.dot(a, b, input_precision="ieee")
        tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    columns = triton.cdiv(n, 32)
    tiles = triton.cdiv(m, 32) * columns
    programs = min(tiles, 128)
    kernel[(programs,)](
        a, b, out, m, n, k, *a.stride(), *b.stride(), columns, tiles // programs, BM=32, BN=32, BK=32
    )
    return out
