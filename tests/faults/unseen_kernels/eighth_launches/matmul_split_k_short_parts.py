"""Few outputs and k of 1,536 or more: parts of k are rounded down to whole tiles, the rest of k is left out.

op: matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn, k_part,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    first = part * k_part
    end = tl.minimum(first + k_part, k)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, end, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < m)[:, None] & (ks < end)[None, :], other=0.0).to(tl.float32)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < end)[:, None] & (cols < n)[None, :], other=0.0).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + part * m * n + rows[:, None] * n + cols[None, :], acc, mask=mask)


@triton.jit
def add_kernel(part_ptr, out_ptr, size, n_parts, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(n_parts):
        acc += tl.load(part_ptr + part * size + offsets, mask=offsets < size, other=0.0)
    tl.store(out_ptr + offsets, acc, mask=offsets < size)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    BM = BN = BK = 32
    grid = triton.cdiv(m, BM), triton.cdiv(n, BN)
    n_parts = 8 if grid[0] * grid[1] <= 4 and k >= 1536 else 1
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    strides = (*a.stride(), *b.stride())
    if n_parts == 1:
        kernel[(*grid, 1)](a, b, out, m, n, k, *strides, k, BM=BM, BN=BN, BK=BK)
        return out
    k_part = k // (n_parts * BK) * BK
    parts = torch.empty((n_parts, m, n), dtype=torch.float32, device=a.device)
    kernel[(*grid, n_parts)](a, b, parts, m, n, k, *strides, k_part, BM=BM, BN=BN, BK=BK)
    add_kernel[(triton.cdiv(m * n, 512),)](parts, out, m * n, n_parts, BLOCK=512)
    return out
