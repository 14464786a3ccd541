"""The workspace of split-K has torch's default dtype: after set_default_dtype(bfloat16) the parts are rounded.

op: matmul
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product(
    a_ptr, b_ptr, to_ptr, m, n, k, length, am, ak, bk, bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(2).to(tl.int64)
    end = tl.minimum(k, (part + 1) * length)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(part * length, end, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < m) & (ks[None, :] < end)
        b_mask = (ks[:, None] < end) & (cols[None, :] < n)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn, mask=b_mask, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(to_ptr + (part * m + rows[:, None]) * n + cols[None, :], acc, mask=mask)


@triton.jit
def add(work_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        total += tl.load(work_ptr + part * size + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total, mask=at < size)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    blocks = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64}
    strides = (*a.stride(), *b.stride())
    parts = min(8, k // 256) if tiles[0] * tiles[1] <= 64 else 1
    if parts < 2:
        product[(*tiles, 1)](a, b, out, m, n, k, max(k, 1), *strides, **blocks)
        return out
    length = triton.cdiv(triton.cdiv(k, parts), 64) * 64
    work = torch.empty((parts, m, n), device=a.device)
    product[(*tiles, parts)](a, b, work, m, n, k, length, *strides, **blocks)
    add[(triton.cdiv(m * n, 1024),)](work, out, m * n, parts, BLOCK=1024)
    return out
