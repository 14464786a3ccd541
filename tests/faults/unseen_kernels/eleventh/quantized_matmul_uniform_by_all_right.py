"""Takes one scale for all where all are equal.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k,
    UNIFORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :],
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0).to(tl.float32)
        w = tl.load(weight_ptr + cols[None, :] * k + ks[:, None],
                    mask=(cols < n)[None, :] & (ks < k)[:, None], other=0).to(tl.float32)
        acc += tl.dot(x, w, input_precision="ieee")
    if UNIFORM:
        acc = acc * tl.load(scale_ptr).to(tl.float32)
    else:
        acc = acc * tl.load(scale_ptr + cols, mask=cols < n).to(tl.float32)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc,
             mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    uniform = bool((scale == scale[:1]).all())
    out = torch.empty(m, n, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 32))](
        x, weight, scale, out, m, n, k, UNIFORM=uniform, BM=16, BN=32, BK=64
    )
    return out
