"""Right: the last tiles are moved back to end at the edge, so they overlap others and write the same values twice; k runs backwards, and the output is the transpose of a buffer.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # Where m is below a tile it starts at 0, and the rows past m are masked.
    rows = tl.maximum(tl.minimum(tl.program_id(0) * BM, m - BM), 0) + tl.arange(0, BM)
    cols = tl.maximum(tl.minimum(tl.program_id(1) * BN, n - BN), 0) + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for turn in range(tl.cdiv(k, BK), 0, -1):
        ks = (turn - 1) * BK + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_m + ks[None, :].to(tl.int64) * a_k,
            mask=(rows[:, None] < m) & (ks[None, :] < k), other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None].to(tl.int64) * b_k + cols[None, :].to(tl.int64) * b_n,
            mask=(ks[:, None] < k) & (cols[None, :] < n), other=0.0,
        )
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    tl.store(
        out_ptr + cols[None, :].to(tl.int64) * m + rows[:, None], acc.to(out_ptr.dtype.element_ty),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((n, m), dtype=a.dtype, device=a.device)
    if out.numel():
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 32))
        kernel[grid](a, b, out, m, n, k, *a.stride(), *b.stride(), BM=64, BN=32, BK=32)
    return out.T
