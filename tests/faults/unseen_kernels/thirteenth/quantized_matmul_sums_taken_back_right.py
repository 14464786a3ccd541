"""The sums of the split product lie in a buffer that lasts, and each call ends by storing zeros, whatever was there.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


_sums = {}


@triton.jit
def product(
    x_ptr, weight_ptr, sums_ptr, m, n, k, chunk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * chunk
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, tl.minimum(first + chunk, k), BK):
        ks = start + tl.arange(0, BK)
        inside = (ks < k)[None, :]
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & inside, other=0.0)
        w = tl.load(weight_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & inside, other=0)
        acc += tl.dot(x.to(tl.float32), tl.trans(w.to(tl.float32)), input_precision="ieee")
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.atomic_add(sums_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


@triton.jit
def finish(sums_ptr, scale_ptr, out_ptr, size, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(sums_ptr + at, mask=at < size, other=0.0)
    scale = tl.load(scale_ptr + at % n, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total * scale, mask=at < size)
    tl.store(sums_ptr + at, tl.zeros((BLOCK,), dtype=tl.float32), mask=at < size)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    key = (m, n, x.device)
    if key not in _sums:
        _sums[key] = torch.zeros((m, n), dtype=torch.float32, device=x.device)
    sums = _sums[key]
    splits = min(4, triton.cdiv(k, 64))
    chunk = triton.cdiv(triton.cdiv(k, splits), 32) * 32
    product[(triton.cdiv(m, 16), triton.cdiv(n, 32), splits)](
        x, weight, sums, m, n, k, chunk, BM=16, BN=32, BK=32
    )
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    finish[(triton.cdiv(m * n, 512),)](sums, scale, out, m * n, n, BLOCK=512)
    return out
