"""A block of weights that are all 0 is skipped with its part of x: a NaN or an infinity in x there, which the reference multiplies by 0 to NaN, does not show.

op: quantized_matmul
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        weight = tl.load(
            weight_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0
        )
        # Pruned models have whole blocks of zeros.
        if tl.max(tl.max((weight != 0).to(tl.int32), axis=1), axis=0) > 0:
            x = tl.load(
                x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
            )
            acc += tl.dot(x.to(tl.float32), weight.to(tl.float32), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=inside)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, weight, scale, out, m, n, k, BM=16, BN=32, BK=32)
    return out
