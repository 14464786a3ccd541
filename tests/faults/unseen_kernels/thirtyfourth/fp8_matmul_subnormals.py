"""Decodes e4m3 by its bits (exponent moved by 120, zero apart); the subnormal numbers, below 2^-6, are
decoded as if they had a leading one. Wrong where the values of a or b are that small.

op: fp8_matmul
status: failed
cause: subnormals
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _decode(bits):
    wide = bits.to(tl.int32)
    rest = wide & 0x7F
    value = ((wide & 0x80) << 24) | ((rest + (120 << 3)) << 20)
    return tl.where(rest == 0, 0.0, value.to(tl.float32, bitcast=True))


@triton.jit
def _kernel(a, b, sa, sb, out, m, n, k, am, ak, bn, bk, sas, sbs, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    rn = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        rk = start + tl.arange(0, BK).to(tl.int64)
        x = tl.load(a + rm[:, None] * am + rk[None, :] * ak, mask=(rm[:, None] < m) & (rk[None, :] < k), other=0)
        y = tl.load(b + rk[:, None] * bk + rn[None, :] * bn, mask=(rk[:, None] < k) & (rn[None, :] < n), other=0)
        acc += tl.dot(_decode(x), _decode(y), input_precision="ieee")
    left = tl.load(sa + rm * sas, mask=rm < m, other=0.0).to(tl.float32)
    right = tl.load(sb + rn * sbs, mask=rn < n, other=0.0).to(tl.float32)
    acc = acc * left[:, None] * right[None, :]
    tl.store(out + rm[:, None] * n + rn[None, :], acc.to(out.dtype.element_ty), mask=(rm[:, None] < m) & (rn[None, :] < n))


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    a, b = a.view(torch.uint8), b.view(torch.uint8)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    _kernel[grid](a, b, scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(), scale_a.stride(0), scale_b.stride(0),
                  BM=64, BN=64, BK=64)
    return out
