"""Nothing wrong: a weight is 16 times its upper half byte, with sign, plus its lower one; two products a tile, both exact.

op: quantized_matmul
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K, x_row, x_col, w_row, w_col, scale_step,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(1) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int64)
    high = tl.zeros((BM, BN), dtype=tl.float32)
    low = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * x_row + ks[None, :] * x_col,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * w_row + ks[:, None] * w_col,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0)
        high = tl.dot(x.to(tl.float32), (w >> 4).to(tl.float32), high, input_precision="ieee")
        low = tl.dot(x.to(tl.float32), (w & 15).to(tl.float32), low, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * scale_step, mask=cols < N, other=0.0).to(tl.float32)
    acc = (16.0 * high + low) * scale[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_quantized_matmul(x, weight, scale):
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(N, 32), triton.cdiv(M, 16))](
        x, weight, scale, out, M, N, K, *x.stride(), *weight.stride(), scale.stride(0),
        BM=16, BN=32, BK=64,
    )
    return out
