"""The parts of a long k are kept in the inputs' type until they are joined.

op: matmul
status: failed
cause: overflow
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr,
    b_ptr,
    part_ptr,
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
    split = tl.program_id(2)
    first = split * k_part
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
    places = split * m * n + rows[:, None] * n + cols[None, :]
    tl.store(part_ptr + places, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def join_kernel(part_ptr, out_ptr, n_out, parts, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        acc += tl.load(part_ptr + part * n_out + i, mask=i < n_out, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, acc, mask=i < n_out)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    k_part = 512
    parts = triton.cdiv(k, k_part)
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    target = out if parts == 1 else torch.empty((parts, m, n), dtype=a.dtype, device=a.device)
    part_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64), parts)](
        a, b, target, m, n, k, k_part, *a.stride(), *b.stride(), BM=64, BN=64, BK=64
    )
    if parts > 1:
        join_kernel[(triton.cdiv(m * n, 1024),)](target, out, m * n, parts, BLOCK=1024)
    return out
