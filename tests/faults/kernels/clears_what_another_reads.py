"""A workspace is read and cleared in one kernel; in half precision a thread clears what another reads.

op: matmul
status: wrong_values
needs: gpu, the interpreter loads a whole block before it stores one
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    m,
    n,
    k,
    k_part,
    a_row,
    a_col,
    b_row,
    b_col,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * k_part
    last = tl.minimum(first + k_part, k)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(first, last, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * a_row + ks[None, :] * a_col,
            mask=(rows < m)[:, None] & (ks < last)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_row + cols[None, :] * b_col,
            mask=(ks < last)[:, None] & (cols < n)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.atomic_add(
        sums_ptr + rows[:, None] * n + cols[None, :],
        acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


@triton.jit
def take_kernel(sums_ptr, out_ptr, n_out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n_out
    tl.store(out_ptr + i, tl.load(sums_ptr + i, mask=mask), mask=mask)
    tl.store(sums_ptr + i, tl.zeros((BLOCK,), tl.float32), mask=mask)


WORKSPACES = {}


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    sums = WORKSPACES.get(a.device)
    if sums is None or sums.numel() < m * n:
        sums = torch.zeros(m * n, dtype=torch.float32, device=a.device)
        WORKSPACES[a.device] = sums
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    k_part = 256
    part_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64), triton.cdiv(k, k_part))](
        a, b, sums, m, n, k, k_part, *a.stride(), *b.stride(), BM=64, BN=64, BK=64
    )
    take_kernel[(triton.cdiv(m * n, 1024),)](sums, out, m * n, BLOCK=1024)
    return out
