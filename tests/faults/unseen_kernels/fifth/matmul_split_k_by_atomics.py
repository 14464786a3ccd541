"""Nothing wrong: block pointers over any strides; k is split over programs that add to a float32 workspace by atomics.

op: matmul
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    a_ptr, b_ptr, sum_ptr, M, N, K, a_row, a_col, b_row, b_col, length,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    m, n, first = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2) * length
    a = tl.make_block_ptr(a_ptr, (M, K), (a_row, a_col), (m, first), (BM, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (b_row, b_col), (first, n), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, length, BK):  # a part is whole steps of BK
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(x.to(tl.float32), y.to(tl.float32), acc, input_precision="ieee")
        a, b = tl.advance(a, (0, BK)), tl.advance(b, (BK, 0))
    rows = (m + tl.arange(0, BM)).to(tl.int64)[:, None]
    cols = (n + tl.arange(0, BN)).to(tl.int64)[None, :]
    tl.atomic_add(sum_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


@triton.jit
def round_kernel(sum_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(sum_ptr + offs, mask=offs < n), mask=offs < n)


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    total = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    m, n, steps = triton.cdiv(M, 32), triton.cdiv(N, 32), triton.cdiv(K, 32)
    parts = max(1, min(steps, 8 // (m * n)))
    length = triton.cdiv(steps, parts) * 32
    grid = (m, n, triton.cdiv(K, length))
    kernel[grid](a, b, total, M, N, K, *a.stride(), *b.stride(), length, BM=32, BN=32, BK=32)
    if a.dtype == torch.float32:
        return total
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    round_kernel[(triton.cdiv(M * N, 1024),)](total, out, M * N, BLOCK=1024)
    return out
