"""The tiles follow a Morton curve whose decoder takes four bits a side: beyond 16 tiles of 64 some are made twice and others never.

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
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    code = tl.program_id(0)
    tile_m, tile_n = 0, 0
    for bit in tl.static_range(4):
        tile_n = tile_n | (((code >> (2 * bit)) & 1) << bit)
        tile_m = tile_m | (((code >> (2 * bit + 1)) & 1) << bit)
    if tile_m * BM >= m or tile_n * BN >= n:
        return
    rows = tile_m * BM + tl.arange(0, BM)
    cols = tile_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    side = triton.next_power_of_2(max(triton.cdiv(m, 64), triton.cdiv(n, 64)))
    kernel[(side * side,)](
        a, b, out, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BM=64, BN=64, BK=32,
    )
    return out
