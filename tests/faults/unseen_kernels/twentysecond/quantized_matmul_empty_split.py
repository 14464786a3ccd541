"""With k from 513 to 576 the last of four splits has no columns and returns before it writes its part of an empty workspace, which the join adds.

op: quantized_matmul
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, part_ptr, m, n, k, per,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    split = tl.program_id(2)
    first = split * per
    if first >= k:
        return
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, min(k, first + per), BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        w = tl.load(
            w_ptr + cols[:, None].to(tl.int64) * k + ks[None, :],
            mask=(cols < n)[:, None] & (ks < k)[None, :], other=0,
        )
        acc += tl.dot(x.to(tl.float32), tl.trans(w.to(tl.float32)), input_precision="ieee")
    at = (split.to(tl.int64) * m + rows[:, None]) * n + cols[None, :]
    tl.store(part_ptr + at, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def join(part_ptr, scale_ptr, out_ptr, m, n, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    size = m * n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(SPLITS):
        total += tl.load(part_ptr + split * size + at, mask=at < size, other=0.0)
    scale = tl.load(scale_ptr + at % n, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total * scale, mask=at < size)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    m, k = x.shape
    n = weight.shape[0]
    splits = 4 if k >= 512 else 1
    per = triton.cdiv(triton.cdiv(k, splits), 64) * 64
    parts = torch.empty((splits, m, n), dtype=torch.float32, device=x.device)
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64), splits)](
        x, weight, parts, m, n, k, per, BM=16, BN=64, BK=64,
    )
    join[(triton.cdiv(m * n, 1024),)](parts, scale, out, m, n, SPLITS=splits, BLOCK=1024)
    return out
