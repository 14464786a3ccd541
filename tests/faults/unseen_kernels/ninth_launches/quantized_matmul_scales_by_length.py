"""Launches: whether a scale belongs to a row or to a column of the output follows from its length, so a square output takes the wrong one.

op: quantized_matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, s_ptr, out_ptr, M, N, K, xm, xk, wn, wk, ss,
    PER_ROW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + ks[:, None] * wk + cols[None, :] * wn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0)
        acc += tl.dot(x, w.to(x.dtype), input_precision="ieee")
    if PER_ROW:
        acc *= tl.load(s_ptr + rows * ss, mask=rows < M, other=0.0).to(tl.float32)[:, None]
    else:
        acc *= tl.load(s_ptr + cols * ss, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc,
             mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_quantized_matmul(x, weight, scale):
    (M, K), (N, _) = x.shape, weight.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    per_row = scale.shape[0] == M
    kernel[(triton.cdiv(M, 16), triton.cdiv(N, 64))](
        x, weight, scale, out, M, N, K, x.stride(0), x.stride(1), weight.stride(0), weight.stride(1),
        scale.stride(0), PER_ROW=per_row, BM=16, BN=64, BK=64,
    )
    return out
