"""With one row of x the products are made in its type: in float16 an activation of 600 times a weight of 120 is infinite.

op: quantized_matmul
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def vector(x_ptr, weight_ptr, scale_ptr, out_ptr, n, k, BN: tl.constexpr, BK: tl.constexpr):
    """One row: no tensor cores, each weight is read once and multiplied as it comes."""
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + ks, mask=ks < k, other=0.0)
        w = tl.load(weight_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & (ks < k)[None, :], other=0)
        product = w.to(x.dtype) * x[None, :]
        acc += tl.sum(product.to(tl.float32), axis=1)
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, acc * scale, mask=cols < n)


@triton.jit
def kernel(x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        w = tl.load(weight_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & (ks < k)[None, :], other=0)
        acc += tl.dot(x.to(tl.float32), tl.trans(w.to(tl.float32)), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=inside)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty(m, n, dtype=x.dtype, device=x.device)
    if m == 1:
        vector[(triton.cdiv(n, 32),)](x, weight, scale, out, n, k, BN=32, BK=64)
    else:
        kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, weight, scale, out, m, n, k, BM=16, BN=32, BK=64)
    return out
