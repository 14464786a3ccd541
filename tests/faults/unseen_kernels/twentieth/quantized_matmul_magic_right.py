"""A weight becomes float16 without a conversion: the byte, with its top bit turned, is the end of the bits of 1024, and 1152 is subtracted.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, s_ptr, out_ptr, m, n, k, x_m, x_k, w_n, w_k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * x_m + at[None, :] * x_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0)
        byte = tl.load(w_ptr + cols[:, None] * w_n + at[None, :] * w_k, mask=(cols < n)[:, None] & (at < k)[None, :], other=0)
        w = ((byte.to(tl.int16) & 0xFF) ^ 0x6480).to(tl.float16, bitcast=True) - 1152.0
        acc += tl.dot(x.to(tl.float32), tl.trans(w.to(tl.float32)), input_precision="ieee")
    s = tl.load(s_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * s[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    scale = scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        x, weight, scale, out, m, n, k, *x.stride(), *weight.stride(), BM=32, BN=32, BK=64,
    )
    return out
