"""Sign and magnitude are taken apart in int8: the magnitude of -128 is -128 again, and the weight becomes +128.

op: quantized_matmul
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32)
        w = tl.load(w_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & (ks < k)[None, :], other=0)
        size = tl.where(w < 0, -w, w).to(tl.float32)  # unsigned decoding, the sign comes back as a bit
        acc += tl.dot(x, tl.trans(tl.where(w < 0, -size, size)), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :],
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](x, weight, scale, out, m, n, k, BM=16, BN=64, BK=64)
    return out
