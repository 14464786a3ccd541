"""A transposed b is read in place with k as its leading dimension: wrong when it is the transpose of a slice of a wider weight.

op: matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_stride,
    TRANSPOSED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_stride + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        if TRANSPOSED:
            at = cols[None, :].to(tl.int64) * k + ks[:, None]
        else:
            at = ks[:, None].to(tl.int64) * n + cols[None, :]
        b = tl.load(b_ptr + at, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    out = out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :]
    tl.store(out, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    if a.stride(1) != 1:
        a = a.contiguous()
    # A weight comes as weight.t(): no copy is needed, the kernel reads it by columns.
    transposed = b.stride(0) == 1 and b.stride(1) >= k
    if not transposed:
        b = b.contiguous()
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    kernel[grid](a, b, out, m, n, k, a.stride(0), TRANSPOSED=transposed, BM=32, BN=32, BK=32)
    return out
