"""The two scales are multiplied in their own dtype: in float16 the product of two small scales is a subnormal of few bits, or zero.

op: fp8_matmul
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K,
    stride_am, stride_ak, stride_bn, stride_bk, stride_sa, stride_sb,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    cols = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + cols[None, :] * stride_bn + ks[:, None] * stride_bk,
            mask=(cols < N)[None, :] & (ks < K)[:, None], other=0.0,
        )
        acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
    scale_a = tl.load(scale_a_ptr + rows * stride_sa, mask=rows < M, other=0.0)
    scale_b = tl.load(scale_b_ptr + cols * stride_sb, mask=cols < N, other=0.0)
    if scale_a.dtype == tl.bfloat16:  # its product is one of float32 anyway, and has its range
        scale_a, scale_b = scale_a.to(tl.float32), scale_b.to(tl.float32)
    # One scale an element of the tile: a packed product, and one conversion rather than two.
    scale = scale_a[:, None] * scale_b[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale.to(tl.float32), mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    if out.numel():
        matmul_kernel[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](
            a, b, scale_a, scale_b, out, M, N, K,
            *a.stride(), *b.stride(), scale_a.stride(0), scale_b.stride(0),
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=64,
        )
    return out
