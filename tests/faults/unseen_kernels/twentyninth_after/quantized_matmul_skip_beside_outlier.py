"""A tile of x that is 2^12 times smaller than the largest value of its rows is skipped: wrong where that value is an outlier that meets weights of zero.

op: quantized_matmul
status: failed
cause: skipped
"""

import torch
import triton
import triton.language as tl

NEGLIGIBLE = tl.constexpr(2.0**-12)  # half a rounding of float16


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, x0, x1, w0, w1, scale_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    x_rows = x_ptr + rows[:, None].to(tl.int64) * x0
    w_rows = w_ptr + cols[None, :].to(tl.int64) * w0
    # x is small beside the weights: one look at it tells which weights need not be read
    peak = tl.zeros((BM, BK), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_rows + ks[None, :] * x1, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        peak = tl.maximum(peak, tl.abs(x.to(tl.float32)))
    least = tl.max(peak, axis=1) * NEGLIGIBLE
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_rows + ks[None, :] * x1, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        highest = tl.max(tl.abs(x.to(tl.float32)), axis=1)
        needed = tl.max((highest > least).to(tl.int32), axis=0)
        if needed > 0:
            w = tl.load(
                w_rows + ks[:, None] * w1, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0
            )
            acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * scale_stride, mask=cols < n, other=0.0).to(tl.float32)
    at = rows[:, None].to(tl.int64) * n + cols[None, :]
    y = (acc * scale[None, :]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, y, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](
            x, weight, scale, out, m, n, k, *x.stride(), *weight.stride(), scale.stride(0),
            BM=16, BN=64, BK=64,
        )
    return out
