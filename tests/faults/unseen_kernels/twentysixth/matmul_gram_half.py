"""Two operands at one address with mirrored shapes are taken for a @ a.T, of which half is computed; a @ a is so too.

op: matmul
status: failed
cause: alias
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, a_m, a_k, b_k, b_n,
    SIDE: tl.constexpr, STEP: tl.constexpr, GRAM: tl.constexpr,
):
    tile_m, tile_n = tl.program_id(0), tl.program_id(1)
    if GRAM:
        if tile_n > tile_m:  # the tile on the other side of the diagonal writes this one
            return
    rows = tile_m.to(tl.int64) * SIDE + tl.arange(0, SIDE)
    cols = tile_n.to(tl.int64) * SIDE + tl.arange(0, SIDE)
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for start in range(0, K, STEP):
        ks = (start + tl.arange(0, STEP)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * a_m + ks[None, :] * a_k,
            mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_k + cols[None, :] * b_n,
            mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=inside)
    if GRAM:
        if tile_n < tile_m:
            tl.store(out_ptr + cols[None, :] * N + rows[:, None], acc, mask=inside)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    # a @ a.T, as in a covariance or a Gram matrix: symmetric, so half of the tiles are enough.
    gram = a.data_ptr() == b.data_ptr() and a.shape == b.shape[::-1]
    side = 32 if a.dtype == torch.float32 else 64
    matmul_kernel[(triton.cdiv(m, side), triton.cdiv(n, side))](
        a, b, out, m, n, k, *a.stride(), *b.stride(), SIDE=side, STEP=32, GRAM=gram
    )
    return out
