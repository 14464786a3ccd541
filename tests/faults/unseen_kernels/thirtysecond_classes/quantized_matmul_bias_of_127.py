"""With few rows in float16 the weights become halves by adding 127 in a byte: -128 wraps and counts as +128.

op: quantized_matmul
status: failed
cause: wrapping
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k,
    MAGIC: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        depth = start + tl.arange(0, K)
        x = tl.load(
            x_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :],
            mask=(rows < m)[:, None] & (depth < k)[None, :], other=0.0,
        )
        w = tl.load(
            w_ptr + cols.to(tl.int64)[None, :] * k + depth[:, None],
            mask=(cols < n)[None, :] & (depth < k)[:, None], other=0,
        )
        if MAGIC:
            # 0x6400 is 1024 as a half, whose last bits count in ones: no slow conversion of integers.
            byte = (w.to(tl.int16) + 127) & 0xFF
            wide = (byte | 0x6400).to(tl.float16, bitcast=True) - 1151.0
        else:
            wide = w.to(x.dtype)
        acc = tl.dot(x, wide.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :],
        acc * scale[None, :],
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        few = m <= 16  # bound by memory and by the conversion
        M, N = (16, 64) if few else (64, 64)
        product_kernel[(triton.cdiv(m, M), triton.cdiv(n, N))](
            x, weight, scale, out, m, n, k,
            MAGIC=few and x.dtype == torch.float16, M=M, N=N, K=64,
        )
    return out
