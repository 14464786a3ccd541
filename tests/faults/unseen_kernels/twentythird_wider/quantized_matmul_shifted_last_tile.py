"""The last tile of columns is moved back to be a whole one; where k is split and the parts are added, the columns that two tiles share are added twice.

op: quantized_matmul
status: failed
cause: overlap
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, parts_ptr, m, n, k, length,
    SPLIT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    # The last tile ends with the last column: no tile but that of a narrow matrix has idle lanes.
    first = tl.maximum(tl.minimum(tl.program_id(0) * BLOCK_N, n - BLOCK_N), 0)
    cols = first + tl.arange(0, BLOCK_N)
    begin = tl.program_id(2) * length
    end = tl.minimum(k, begin + length)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(begin, end, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows.to(tl.int64)[:, None] * k + ks[None], mask=(rows[:, None] < m) & (ks[None] < end), other=0.0
        )
        w = tl.load(
            w_ptr + cols.to(tl.int64)[None] * k + ks[:, None], mask=(cols[None] < n) & (ks[:, None] < end), other=0
        )
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    inside = (rows[:, None] < m) & (cols[None] < n)
    place = rows.to(tl.int64)[:, None] * n + cols[None]
    if SPLIT:
        tl.atomic_add(parts_ptr + place, acc, mask=inside, sem="relaxed")
    else:
        scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + place, acc * scale[None], mask=inside)


@triton.jit
def scale_kernel(parts_ptr, scale_ptr, out_ptr, n, elements, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.load(parts_ptr + at, mask=at < elements)
    scale = tl.load(scale_ptr + at % n, mask=at < elements).to(tl.float32)
    tl.store(out_ptr + at, acc * scale, mask=at < elements)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(n, 32) * triton.cdiv(m, 16)
    splits = max(1, min(k // 256, 256 // tiles))
    length = triton.cdiv(triton.cdiv(k, splits), 64) * 64
    parts = torch.zeros((m, n), dtype=torch.float32, device=x.device) if splits > 1 else out
    grid = (triton.cdiv(n, 32), triton.cdiv(m, 16), splits)
    kernel[grid](
        x, weight, scale, out, parts, m, n, k, length, SPLIT=splits > 1, BLOCK_M=16, BLOCK_N=32, BLOCK_K=64
    )
    if splits > 1:
        scale_kernel[(triton.cdiv(m * n, 1024),)](parts, scale, out, n, m * n, BLOCK=1024)
    return out
