"""Weights are moved to 0..255 and 128 times the sum of x is taken off again; between two kernels that sum is in x's dtype.

op: quantized_matmul
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, k, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * k + inner, mask=inner < k, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row, tl.sum(total, axis=0))


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, sums_ptr, out_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows.to(tl.int64)[:, None] * k + inner[None, :],
            mask=(rows < m)[:, None] & (inner < k)[None, :], other=0.0,
        )
        weight = tl.load(
            weight_ptr + cols.to(tl.int64)[None, :] * k + inner[:, None],
            mask=(cols < n)[None, :] & (inner < k)[:, None], other=0,
        )
        # Unsigned bytes convert in one instruction; 0..255 is exact in either half type.
        unsigned = (weight.to(tl.int32) + 128).to(x.dtype)
        total = tl.dot(x, unsigned, total, input_precision="ieee")
    sums = tl.load(sums_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = (total - 128.0 * sums[:, None]) * scale[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :], out, mask=mask)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    sums = torch.empty(m, dtype=x.dtype, device=x.device)
    sums_kernel[(m,)](x, sums, k, BLOCK=1024)
    BLOCK_M, BLOCK_N = 16 if m <= 16 else 64, 64
    kernel[(triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))](
        x, weight, scale, sums, out, m, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=64
    )
    return out
