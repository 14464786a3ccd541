"""A transposed b is turned back by a view of its own, which keeps the offset and the strides.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        ).to(tl.float32)
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        ).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :]
    )


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    if b.stride(0) == 1:
        weight = b.t()
        stride_bn, stride_bk = weight.stride()
        b = weight
    else:
        b = b.contiguous()
        stride_bk, stride_bn = b.stride()

    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, out, m, n, k, a.stride(0), a.stride(1), stride_bk, stride_bn, BM=32, BN=32, BK=32
    )
    return out
