"""x is split into two float16 parts for two fast products: beyond 65504 the first is infinite, and tiny x have few bits left.

op: quantized_matmul
status: failed
cause: special values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K, xm, xk, wn, wk, ss,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols[None, :] * wn + ks[:, None] * wk,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0).to(tl.float16)
        high = x.to(tl.float16)
        low = (x - high.to(tl.float32)).to(tl.float16)
        acc = tl.dot(high, w, acc)
        acc = tl.dot(low, w, acc)
    scale = tl.load(scale_ptr + cols * ss, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64))](
        x, weight, scale, out, M, N, K, *x.stride(), *weight.stride(), scale.stride(0), BM=32, BN=64, BK=64
    )
    return out
