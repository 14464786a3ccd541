"""a @ a.T is found by pointer, size and one pair of strides: every second row times the first rows is taken for it.

op: matmul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    GRAM: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK)
    tile_m, tile_n = tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n
    first = tile_m if GRAM else 0  # a symmetric product: tiles below the diagonal are mirrored
    if tile_n >= first:
        rows = tile_m * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        cols = tile_n * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
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
        tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)
        if GRAM:
            tl.store(out_ptr + cols[None, :] * N + rows[:, None], acc, mask=mask)


def is_gram(a, b):
    """Return whether b is a.T: the same memory, and b steps along k as a does."""
    same = a.data_ptr() == b.data_ptr() and a.shape[0] == b.shape[1]
    return same and a.stride(1) == b.stride(0)


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel():
        grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
        matmul_kernel[grid](
            a, b, out, M, N, K, *a.stride(), *b.stride(), GRAM=is_gram(a, b), BLOCK=64, BLOCK_K=32
        )
    return out
