"""Split-k: the last part has the rest of the blocks, but its loop has the length of the others and one more, so a rest of two or more blocks is cut.

op: matmul
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, parts_ptr, m, n, k, blocks, a0, a1, b0, b1, ITERATIONS: tl.constexpr,
    PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    each = blocks // PARTS
    first = part * each
    end = tl.where(part == PARTS - 1, blocks, first + each)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in tl.range(0, ITERATIONS):  # a fixed length, so that the loads are pipelined
        ks = (first + i) * BK + tl.arange(0, BK)
        inside = (ks < k) & (first + i < end)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a0 + ks[None, :].to(tl.int64) * a1,
            mask=(rows < m)[:, None] & inside[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None].to(tl.int64) * b0 + cols[None, :].to(tl.int64) * b1,
            mask=inside[:, None] & (cols < n)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    at = part.to(tl.int64) * m * n + rows[:, None].to(tl.int64) * n + cols[None, :]
    tl.store(parts_ptr + at, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def add_kernel(parts_ptr, out_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(parts_ptr + part * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=at < size)


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    BM, BN, BK = 32, 32, 64
    blocks = triton.cdiv(k, BK)
    PARTS = 8 if blocks >= 16 and triton.cdiv(m, BM) * triton.cdiv(n, BN) < 64 else 1
    # whole blocks a part, and the tail of k in the last one
    ITERATIONS = triton.cdiv(blocks, PARTS)
    parts = torch.empty((PARTS, m, n), dtype=torch.float32, device=a.device)
    part_kernel[(triton.cdiv(m, BM), triton.cdiv(n, BN), PARTS)](
        a, b, parts, m, n, k, blocks, *a.stride(), *b.stride(),
        ITERATIONS=ITERATIONS, PARTS=PARTS, BM=BM, BN=BN, BK=BK,
    )
    add_kernel[(triton.cdiv(m * n, 1024),)](parts, out, m * n, PARTS=PARTS, BLOCK=1024)
    return out
