"""When both matrices are transposed views, the product of the swapped ones is viewed as [m, n] instead of being transposed.

op: matmul
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * am + ks[None, :] * ak,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None].to(tl.int64) * bk + cols[None, :] * bn,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :], acc, mask=inside)


def triton_matmul(a, b):
    # Two column-major operands: (a @ b)^T = b^T @ a^T reads both along their rows.
    swap = a.stride(0) == 1 and b.stride(0) == 1
    if swap:
        a, b = b.t(), a.t()
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        a, b, out, m, n, k, *a.stride(), *b.stride(), BM=64, BN=64, BK=32,
    )
    return out.view(n, m) if swap else out
