"""Programs are grouped by eight tiles of n, and the last group counts as full: with several tiles of m and more than eight of n, not a multiple, some tiles are never written.

op: quantized_matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid = tl.program_id(0)
    in_group = GROUP * tl.cdiv(m, BM)
    first = pid // in_group * GROUP
    tile_n = first + pid % GROUP
    tile_m = pid % in_group // GROUP
    rows = tile_m * BM + tl.arange(0, BM)
    cols = tile_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        w = tl.load(weight_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0)
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    at = rows[:, None] * n + cols[None, :]
    tl.store(out_ptr + at, acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    tiles_m, tiles_n = triton.cdiv(m, 16), triton.cdiv(n, 64)
    kernel[(tiles_m * tiles_n,)](
        x, weight, scale, out, m, n, k, GROUP=min(8, tiles_n), BM=16, BN=64, BK=64
    )
    return out
