"""The output is made like a where it has a's shape, so it is transposed if a is, and is written by rows.

op: matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_col, b_row, b_col,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * a_row + ks[None, :] * a_col,
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * b_row + cols[None, :] * b_col,
                    mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc,
             mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty_like(a) if n == k else a.new_empty(m, n)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, out, m, n, k, *a.stride(), *b.stride(), BM=32, BN=32, BK=32
    )
    return out
