"""The transposed product is made, tile by tile with k from its end to its start, and returned as a transposed view.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    blocks = tl.cdiv(k, BK)
    for number in range(0, blocks):
        ks = (blocks - 1 - number) * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[None, :] * sam + ks[:, None] * sak, mask=(rows < m)[None, :] & (ks < k)[:, None], other=0.0)
        b = tl.load(b_ptr + ks[None, :] * sbk + cols[:, None] * sbn, mask=(ks < k)[None, :] & (cols < n)[:, None], other=0.0)
        acc += tl.dot(b.to(tl.float32), a.to(tl.float32), input_precision="ieee")
    tl.store(out_ptr + cols[:, None] * m + rows[None, :], acc, mask=(cols < n)[:, None] & (rows < m)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((n, m), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(n, 32), triton.cdiv(m, 32))](
        a, b, out, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BM=32, BN=32, BK=32,
    )
    return out.t()
