"""The product of the two scales is formed in their dtype: below float16's numbers it is zero.

op: fp8_matmul
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    within = pid % (GROUP * tiles_n)
    return first + within % height, within // height


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), M, N, BM, BN, 4)
    rows = tile_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = tile_n.to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0.0)
        acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < M, other=0.0)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < N, other=0.0)
    scale = scale_a.to(tl.float32)[:, None] * scale_b.to(tl.float32)[None, :]
    scale = scale.to(scale_a.dtype)  # half the registers beside the accumulator
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    out = acc * scale.to(tl.float32)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], out, mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous(), b.contiguous()
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 64),)
    kernel[grid](a, b, scale_a, scale_b, out, M, N, K, BM=32, BN=64, BK=64)
    return out
