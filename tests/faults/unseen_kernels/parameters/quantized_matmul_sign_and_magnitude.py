"""The weight is taken apart in sign and magnitude in eight bits: the magnitude of -128 is -128.

op: quantized_matmul
status: failed
cause: parameter
"""

import torch
import triton
import triton.language as tl


@triton.jit
def widen(w):
    """Return the weights in float32, by their sign and their magnitude."""
    magnitude = tl.abs(w).to(tl.float32)
    return tl.where(w < 0, -magnitude, magnitude)


@triton.jit
def row_kernel(x_ptr, w_ptr, scale_ptr, out_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    """One row of x, as in decoding: no tl.dot."""
    row = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * K + ks, mask=ks < K, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols[:, None] * K + ks[None, :],
                    mask=(cols < N)[:, None] & (ks < K)[None, :], other=0)
        acc += widen(w) * x[None, :]
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, tl.sum(acc, axis=1) * scale, mask=cols < N)


@triton.jit
def tile_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc += tl.dot(x.to(tl.float32), widen(w), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M <= 4:
        grid = (triton.cdiv(N, 32), M)
        row_kernel[grid](x, weight, scale, out, N, K, BN=32, BK=128)
    else:
        grid = (triton.cdiv(N, 64), triton.cdiv(M, 64))
        tile_kernel[grid](x, weight, scale, out, M, N, K, BM=64, BN=64, BK=32)
    return out
