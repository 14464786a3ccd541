"""The transposed product is computed, and a transposed view of it returned.

op: matmul
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    left_ptr,
    right_ptr,
    out_ptr,
    m,
    n,
    k,
    left_row,
    left_col,
    right_row,
    right_col,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        left = tl.load(
            left_ptr + rows[:, None] * left_row + ks[None, :] * left_col,
            mask=(rows < m)[:, None] & (ks < k)[None, :],
            other=0.0,
        )
        right = tl.load(
            right_ptr + ks[:, None] * right_row + cols[None, :] * right_col,
            mask=(ks < k)[:, None] & (cols < n)[None, :],
            other=0.0,
        )
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_matmul(a, b):
    left, right = b.mT, a.mT
    (m, k), n = left.shape, right.shape[1]
    turned = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        left, right, turned, m, n, k, *left.stride(), *right.stride(), BM=64, BN=64, BK=32
    )
    return turned.mT
