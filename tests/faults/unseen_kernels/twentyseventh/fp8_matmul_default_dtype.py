"""The sums of a split k are kept in torch's default dtype: wrong where a program has set that to float16.

op: fp8_matmul
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k, length,
    WHOLE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(part * length, tl.minimum(k, part * length + length), BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None] * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + cols[None, :] * k + ks[:, None],
            mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0,
        )
        acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
    if WHOLE:
        scale_a = tl.load(scale_a_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
        scale_b = tl.load(scale_b_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
        acc = acc * scale_a[:, None] * scale_b[None, :]
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + (part.to(tl.int64) * m + rows[:, None]) * n + cols[None, :], acc, mask=inside)


@triton.jit
def sum_kernel(
    parts_ptr, scale_a_ptr, scale_b_ptr, out_ptr, size, n, parts, BLOCK: tl.constexpr
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < size
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        total += tl.load(parts_ptr + part * size + places, mask=mask, other=0.0).to(tl.float32)
    scale_a = tl.load(scale_a_ptr + places // n, mask=mask, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + places % n, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, total * scale_a * scale_b, mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous(), b.contiguous()
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if not out.numel():
        return out
    sizes = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 128}
    tiles = triton.cdiv(n, 64), triton.cdiv(m, 32)
    parts = max(1, min(k // 512, 16, 256 // (tiles[0] * tiles[1])))
    if parts == 1:
        part_kernel[(*tiles, 1)](a, b, scale_a, scale_b, out, m, n, k, k, WHOLE=True, **sizes)
        return out
    length = triton.cdiv(triton.cdiv(k, parts), 128) * 128
    sums = torch.empty((parts, m, n), device=a.device)  # unscaled, so float32
    part_kernel[(*tiles, parts)](
        a, b, scale_a, scale_b, sums, m, n, k, length, WHOLE=False, **sizes
    )
    sum_kernel[(triton.cdiv(m * n, 1024),)](
        sums, scale_a, scale_b, out, m * n, n, parts, BLOCK=1024
    )
    return out
