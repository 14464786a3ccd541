"""A float32 x is two bfloat16 limbs, 16 bits: wrong when a large offset in x cancels over a row of weights that sums to zero.

op: quantized_matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def limb(x):
    """Round to the 8 bits of a bfloat16."""
    bits = x.to(tl.int32, bitcast=True)
    bits += 0x7FFF + ((bits >> 16) & 1)
    return (bits & -65536).to(tl.float32, bitcast=True)


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k,
    LIMBS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        )
        weight = tl.load(
            weight_ptr + cols[None, :] * k + ks[:, None], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0
        ).to(tl.float32)
        # int8 fits into the half types exactly, so only x has limbs.
        if LIMBS:
            high = limb(x)
            low = limb(x - high)
            acc = tl.dot(high, weight, acc, input_precision="ieee")
            acc = tl.dot(low, weight, acc, input_precision="ieee")
        else:
            acc = tl.dot(x.to(tl.float32), weight, acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = out_ptr + rows[:, None] * n + cols[None, :]
    tl.store(out, acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 64))
    kernel[grid](x, weight, scale, out, m, n, k, LIMBS=x.dtype == torch.float32, BM=16, BN=64, BK=64)
    return out
