"""A single row of x is read as a line of memory; as a column of a larger matrix, transposed, it has another step.

op: quantized_matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.jit
def row_kernel(x_ptr, w_ptr, scale_ptr, out_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    cols = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + ks, mask=ks < K, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols[:, None] * K + ks[None, :], mask=(cols < N)[:, None] & (ks < K)[None, :], other=0)
        acc += x[None, :] * w.to(tl.float32)
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, tl.sum(acc, axis=1) * scale, mask=cols < N)


@triton.jit
def tile_kernel(x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K, x_row, x_col, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * x_row + ks[None, :] * x_col, mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None], mask=(ks < K)[:, None] & (cols < N)[None, :], other=0)
        acc = tl.dot(x.to(tl.float32), w.to(tl.float32), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_quantized_matmul(x, weight, scale):
    weight, scale = weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 1:  # decoding: a vector, nothing for the tensor cores
        row_kernel[(triton.cdiv(N, 16),)](x, weight, scale, out, N, K, BN=16, BK=128)
    else:
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 64))
        tile_kernel[grid](x, weight, scale, out, M, N, K, *x.stride(), BM=16, BN=64, BK=64)
    return out
