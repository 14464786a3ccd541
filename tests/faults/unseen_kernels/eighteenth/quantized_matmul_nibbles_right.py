"""Each weight is 16 times its upper nibble plus its lower one, each with a product of its own; the two meet in float32 before the scale.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, sx, sk, wn, wk, ss,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    upper = tl.zeros((BM, BN), dtype=tl.float32)
    lower = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * sx + ks[None, :] * sk, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32)
        w = tl.load(
            w_ptr + ks[:, None] * wk + cols[None, :] * wn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0
        ).to(tl.int32)
        upper += tl.dot(x, (w >> 4).to(tl.float32), input_precision="ieee")
        lower += tl.dot(x, (w & 15).to(tl.float32), input_precision="ieee")
    scale = tl.load(scale_ptr + cols * ss, mask=cols < n, other=0.0).to(tl.float32)
    out = out_ptr + rows[:, None] * n + cols[None, :]
    tl.store(out, (upper * 16.0 + lower) * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n, 64), triton.cdiv(m, 16))](
        x, weight, scale, out, m, n, k, *x.stride(), *weight.stride(), scale.stride(0), BM=16, BN=64, BK=32
    )
    return out
