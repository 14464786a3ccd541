"""Partial products of a block of k are rounded to the input's dtype before they are scaled, where they overflow.

op: quantized_matmul
status: failed
cause: overflow
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        part = tl.dot(x, w.to(x.dtype), input_precision="ieee").to(x.dtype)
        acc += part.to(tl.float32) * scale[None, :].to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64))](
        x, weight, scale, out, M, N, K, BM=32, BN=64, BK=64
    )
    return out
