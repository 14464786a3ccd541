"""A long reduction is split in two, and the parts are kept in the dtype of the output.

op: matmul
status: failed
cause: overflow
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, part_ptr, M, N, K, length, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * length
    end = tl.minimum(K, first + length)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, end, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < end)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :],
                    mask=(ks < end)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    places = tl.program_id(2).to(tl.int64) * M * N + rows[:, None] * N + cols[None, :]
    tl.store(part_ptr + places, acc, mask=mask)


@triton.jit
def add_kernel(part_ptr, c_ptr, n, parts, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(0, parts):
        acc += tl.load(part_ptr + part * n + places, mask=places < n, other=0.0).to(tl.float32)
    tl.store(c_ptr + places, acc, mask=places < n)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), N = a.shape, b.shape[1]
    parts = 2 if K > 2048 else 1
    workspace = torch.empty((parts, M, N), dtype=a.dtype, device=a.device)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    length = triton.cdiv(K, parts)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64), parts)
    part_kernel[grid](a, b, workspace, M, N, K, length, BM=64, BN=64, BK=64)
    add_kernel[(triton.cdiv(M * N, 1024),)](workspace, c, M * N, parts, BLOCK=1024)
    return c
