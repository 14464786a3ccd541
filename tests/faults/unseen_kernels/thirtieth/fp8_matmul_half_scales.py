"""The two scales are multiplied in float16: the product of two scales of about 0.001 has few bits left, or none.

op: fp8_matmul
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, am, ak, bn, bk, sas, sbs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a_mask = (rows[:, None] < m) & (ks[None, :] < k)
        b_mask = (ks[:, None] < k) & (cols[None, :] < n)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn, mask=b_mask, other=0.0)
        acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
    scale_a = tl.load(sa_ptr + rows * sas, mask=rows < m, other=0.0)
    scale_b = tl.load(sb_ptr + cols * sbs, mask=cols < n, other=0.0)
    if scale_a.dtype == tl.bfloat16:  # eight bits are too few for the product
        scale_a, scale_b = scale_a.to(tl.float32), scale_b.to(tl.float32)
    # One multiplication of the accumulator instead of two.
    scale = scale_a[:, None] * scale_b[None, :]
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale.to(tl.float32), mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        a, b, scale_a, scale_b, out, m, n, k,
        *a.stride(), *b.stride(), scale_a.stride(0), scale_b.stride(0),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=64,
    )  # fmt: skip
    return out
