"""For few rows and a wide output the table has tiles of 256 along k, but "even" means divisible by 128: the rest of k is left out.

op: quantized_matmul
status: failed
cause: configuration
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Config(NamedTuple):
    rows: int
    cols: int
    depth: int
    warps: int
    stages: int


CONFIGS = {
    "wide": Config(16, 64, 256, 4, 3),  # decoding, up projections: long runs of each weight row
    "decode": Config(16, 64, 128, 4, 4),
    "narrow": Config(32, 32, 128, 4, 3),
    "prefill": Config(64, 64, 64, 4, 3),
}
EVEN = 128  # without a mask along k


def pick(m, n, k):
    if m <= 16:
        return CONFIGS["wide" if n >= 8 * k else "decode"]
    return CONFIGS["narrow" if m <= 32 and n <= k else "prefill"]


@triton.jit
def kernel(x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, xm, xk, wn, wk, EVEN_K: tl.constexpr,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    row_mask, col_mask = rows < m, cols < n
    x_at = x_ptr + rows.to(tl.int64)[:, None] * xm + ks.to(tl.int64)[None, :] * xk
    w_at = w_ptr + cols.to(tl.int64)[None, :] * wn + ks.to(tl.int64)[:, None] * wk
    total = tl.zeros((BM, BN), dtype=tl.float32)
    if EVEN_K:
        for _ in range(k // BK):
            x = tl.load(x_at, mask=row_mask[:, None], other=0.0)
            w = tl.load(w_at, mask=col_mask[None, :], other=0)
            total = tl.dot(x, w.to(x.dtype), total, input_precision="ieee")
            x_at += BK * xk
            w_at += BK * wk
    else:
        for start in range(0, k, BK):
            inside = start + ks < k
            x = tl.load(x_at, mask=row_mask[:, None] & inside[None, :], other=0.0)
            w = tl.load(w_at, mask=col_mask[None, :] & inside[:, None], other=0)
            total = tl.dot(x, w.to(x.dtype), total, input_precision="ieee")
            x_at += BK * xk
            w_at += BK * wk
    scale = tl.load(scale_ptr + cols, mask=col_mask, other=0.0).to(tl.float32)
    at = rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(out_ptr + at, total * scale[None, :], mask=row_mask[:, None] & col_mask[None, :])


def triton_quantized_matmul(x, weight, scale):
    scale = scale.contiguous()
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    config = pick(m, n, k)
    # float32 takes twice the shared memory: fewer stages
    stages = max(2, config.stages - 2) if x.dtype == torch.float32 else config.stages
    grid = (triton.cdiv(n, config.cols), triton.cdiv(m, config.rows))
    kernel[grid](
        x, weight, scale, out, m, n, k, *x.stride(), *weight.stride(), EVEN_K=k % EVEN == 0,
        BM=config.rows, BN=config.cols, BK=config.depth,
        num_warps=config.warps, num_stages=stages,
    )  # fmt: skip
    return out
