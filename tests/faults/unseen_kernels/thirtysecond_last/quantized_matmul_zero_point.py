"""Weights are made unsigned by adding 128, corrected by 128 times the row's sum of x; the sums are stored in the dtype of x and so rounded: wrong for positive x.

op: quantized_matmul
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, sums_ptr, k, x_m, x_k, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        ks = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * x_m + ks * x_k, mask=ks < k, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row, tl.sum(total, axis=0).to(sums_ptr.dtype.element_ty))


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, sums_ptr, out_ptr, m, n, k, x_m, x_k, w_n, w_k, s_n,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_m + ks[None, :] * x_k,
            mask=(rows[:, None] < m) & (ks[None, :] < k), other=0.0,
        )
        w = tl.load(
            w_ptr + cols[None, :].to(tl.int64) * w_n + ks[:, None] * w_k,
            mask=(cols[None, :] < n) & (ks[:, None] < k), other=0,
        )
        # Unsigned bytes convert with one permutation instead of a sign extension.
        unsigned = (w.to(tl.uint8, bitcast=True) ^ 0x80).to(tl.float32)
        acc = tl.dot(x.to(tl.float32), unsigned, acc, input_precision="ieee")
    sums = tl.load(sums_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + cols * s_n, mask=cols < n, other=0.0).to(tl.float32)
    out = (acc - 128.0 * sums[:, None]) * scale[None, :]
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :], out.to(out_ptr.dtype.element_ty),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def triton_quantized_matmul(x, weight, scale):
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    sums = torch.empty(m, dtype=x.dtype, device=x.device)
    row_sums[(m,)](x, sums, k, *x.stride(), BLOCK=1024)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 64))
    kernel[grid](
        x, weight, scale, sums, out, m, n, k, *x.stride(), *weight.stride(), scale.stride(0),
        BM=16, BN=64, BK=64,
    )
    return out
