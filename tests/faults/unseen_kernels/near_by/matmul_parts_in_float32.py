"""Nothing wrong: from k = 512 the product is split in four along k; the parts are float32.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, part_ptr, M, N, K, per_part,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    last = tl.minimum((part + 1) * per_part, K)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * per_part, last, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < last)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None].to(tl.int64) * N + cols[None, :],
                    mask=(ks < last)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    places = (part.to(tl.int64) * M + rows[:, None]) * N + cols[None, :]
    tl.store(part_ptr + places, acc.to(part_ptr.dtype.element_ty), mask=mask)


@triton.jit
def add_kernel(part_ptr, out_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        acc += tl.load(part_ptr + part * n + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    PARTS = 4 if K >= 512 else 1
    per_part = triton.cdiv(triton.cdiv(K, PARTS), 32) * 32
    parts = torch.empty((PARTS, M, N), dtype=torch.float32, device=a.device) if PARTS > 1 else out
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64), PARTS)
    part_kernel[grid](a, b, parts, M, N, K, per_part, BM=64, BN=64, BK=32)
    if PARTS > 1:
        add_kernel[(triton.cdiv(M * N, 1024),)](parts, out, M * N, PARTS=PARTS, BLOCK=1024)
    return out
