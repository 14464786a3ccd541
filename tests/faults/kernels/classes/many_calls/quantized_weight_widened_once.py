"""The widened weight is kept by the address of the int8 weight.

op: quantized_matmul
status: failed
cause: stale_cache
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def widen_kernel(w_ptr, s_ptr, wide_ptr, n, k, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n * k
    scale = tl.load(s_ptr + i // k, mask=mask, other=0.0).to(tl.float32)
    tl.store(wide_ptr + i, tl.load(w_ptr + i, mask=mask, other=0).to(tl.float32) * scale, mask=mask)


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :],
            other=0.0,
        ).to(tl.float32)
        w = tl.load(
            w_ptr + cols[None, :] * k + ks[:, None],
            mask=(cols < n)[None, :] & (ks < k)[:, None],
            other=0.0,
        )
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


WIDE = {}


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    key = (weight.data_ptr(), scale.data_ptr(), n, k)
    if key not in WIDE:
        WIDE.clear()
        wide = torch.empty((n, k), dtype=torch.float32, device=x.device)
        widen_kernel[(triton.cdiv(n * k, 1024),)](
            weight.contiguous(), scale.contiguous(), wide, n, k, BLOCK=1024
        )
        WIDE[key] = wide
    x = x.contiguous()
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](
        x, WIDE[key], out, m, n, k, BM=16, BN=64, BK=64
    )
    return out
