"""From eight rows of tiles on, tiles go in groups of eight rows, and a last group with fewer rows leaves tiles out.

op: quantized_matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, s_ptr, out_ptr, M, N, K, xm, xk, wn, wk, sn,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    tile_m = pid // in_group * GROUP + pid % GROUP
    tile_n = pid % in_group // GROUP
    rows = (tile_m * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tile_n * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * wn + ks[:, None] * wk,
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc += tl.dot(x, w.to(x.dtype), input_precision="ieee")
    scale = tl.load(s_ptr + cols * sn, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    M, K = x.shape
    N = weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    tiles_m = triton.cdiv(M, 64)
    group = 8 if tiles_m >= 8 else 1  # decoding has few rows: nothing to group
    kernel[(tiles_m * triton.cdiv(N, 64),)](
        x, weight, scale, out, M, N, K, *x.stride(), *weight.stride(), scale.stride(0),
        GROUP=group, BM=64, BN=64, BK=64,
    )
    return out
