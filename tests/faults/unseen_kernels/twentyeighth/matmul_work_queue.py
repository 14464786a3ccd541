"""Right: a program takes tiles from a counter until none is left, so that which program makes which tile is open; tiles are stored through a transposed product where b is transposed.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def queue_kernel(
    counter_ptr, a_ptr, b_ptr, out_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    n_tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    tile = tl.atomic_add(counter_ptr, 1)
    while tile < n_tiles:
        last = n_tiles - 1 - tile  # the ragged tiles first: they are done while others run
        rows = (last % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
        cols = (last // tiles_m) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
            a = tl.load(
                a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
                mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
            )
            b = tl.load(
                b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn,
                mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0,
            )
            acc = tl.dot(a, b, acc, input_precision="ieee")
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on, acc, mask=mask)
        tile = tl.atomic_add(counter_ptr, 1)


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    turned = a.stride(0) == 1 and b.stride(0) == 1  # out.T = b.T @ a.T, whose factors lie by rows
    left, right, to = (b.T, a.T, out.T) if turned else (a, b, out)
    (M, K), N = left.shape, right.shape[1]
    counter = torch.zeros(1, dtype=torch.int32, device=a.device)
    programs = min(132, triton.cdiv(M, 64) * triton.cdiv(N, 32))
    queue_kernel[(programs,)](
        counter, left, right, to, M, N, K, *left.stride(), *right.stride(), *to.stride(),
        BLOCK_M=64, BLOCK_N=32, BLOCK_K=32,
    )
    return out
