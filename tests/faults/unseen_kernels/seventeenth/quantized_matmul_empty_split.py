"""Up to 16 rows with k from 2048 on: eight programs share the blocks of k, and one with no block left writes nothing, but its part of the fresh workspace is added.

op: quantized_matmul
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(x_ptr, w_ptr, parts_ptr, m, n, k, per, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    split = tl.program_id(1)
    first = split * per * BK
    if first >= k:
        return
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, tl.minimum(k, first + per * BK), BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0)
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    at = (split * m + rows[:, None]) * n + cols[None, :]
    tl.store(parts_ptr + at, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def join_kernel(parts_ptr, scale_ptr, out_ptr, m, n, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < m * n
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        acc += tl.load(parts_ptr + split * m * n + at, mask=mask, other=0.0)
    scale = tl.load(scale_ptr + at % n, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, acc * scale, mask=mask)


@triton.jit
def kernel(x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0)
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m <= 16 and k >= 2048:
        parts = torch.empty((8, m, n), dtype=torch.float32, device=x.device)
        per = triton.cdiv(triton.cdiv(k, 64), 8)
        split_kernel[(triton.cdiv(n, 32), 8)](x, weight, parts, m, n, k, per, BM=16, BN=32, BK=64)
        join_kernel[(triton.cdiv(m * n, 256),)](parts, scale, out, m, n, SPLITS=8, BLOCK=256)
    else:
        kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](x, weight, scale, out, m, n, k, BM=32, BN=32, BK=64)
    return out
