"""A plan is kept for all m up to a power of two, with the grid of the first m: a larger m of the same bucket loses its last rows.

op: quantized_matmul
status: failed
cause: plan
"""

import torch
import triton
import triton.language as tl

_plans = {}


@triton.jit
def product_kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k,
    x_m, x_k, w_n, w_k, s_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * x_m + ks[None, :] * x_k,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        weight = tl.load(
            weight_ptr + cols[None, :] * w_n + ks[:, None] * w_k,
            mask=(cols < n)[None, :] & (ks < k)[:, None], other=0,
        )
        acc = tl.dot(x, weight.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * s_n, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


def plan_for(m, n, k, dtype):
    """Tiles and grid. m changes from step to step while a model decodes: plans are kept by bucket."""
    bucket = max(16, triton.next_power_of_2(m))
    key = (bucket, n, k, dtype)
    if key not in _plans:
        BLOCK_M = 16 if bucket <= 64 else 32 if bucket <= 256 else 64
        BLOCK_N = 32 if n <= 4096 else 64
        meta = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": 64 if dtype == torch.float32 else 128}
        _plans[key] = (triton.cdiv(n, BLOCK_N), triton.cdiv(m, BLOCK_M)), meta
    return _plans[key]


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        grid, meta = plan_for(m, n, k, x.dtype)
        product_kernel[grid](
            x, weight, scale, out, m, n, k, *x.stride(), *weight.stride(), scale.stride(0), **meta
        )
    return out
