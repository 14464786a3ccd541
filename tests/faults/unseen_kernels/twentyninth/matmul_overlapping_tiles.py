"""Right: the last tiles are moved back into the matrix and overlap others, written twice with the same values; k ends the same way.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def wide(x):
    """bfloat16 as float32: exact, and older devices and the interpreter have no product of it."""
    if x.dtype == tl.bfloat16:
        x = x.to(tl.float32)
    return x


@triton.jit
def piece(a_ptr, b_ptr, rows, cols, ks, k, done, m, n, a_m, a_k, b_k, b_n):
    """Tiles of a and b at ks, without what is done."""
    new = (ks >= done) & (ks < k)
    a = tl.load(
        a_ptr + rows[:, None] * a_m + ks[None, :] * a_k,
        mask=(rows < m)[:, None] & new[None, :], other=0.0,
    )
    b = tl.load(
        b_ptr + ks[:, None] * b_k + cols[None, :] * b_n,
        mask=new[:, None] & (cols < n)[None, :], other=0.0,
    )
    return wide(a), wide(b)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    m_tiles, n_tiles = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = pid // (GROUP * n_tiles)
    height = tl.minimum(GROUP, m_tiles - group * GROUP)
    # Of pid itself, not of its place in the group: turned around, but each tile comes once.
    i = group * GROUP + pid % height
    j = pid % (GROUP * n_tiles) // height
    first_row = tl.maximum(0, tl.minimum(i * BLOCK_M, m - BLOCK_M)).to(tl.int64)
    first_col = tl.maximum(0, tl.minimum(j * BLOCK_N, n - BLOCK_N)).to(tl.int64)
    rows = first_row + tl.arange(0, BLOCK_M)
    cols = first_col + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K).to(tl.int64)
    whole = k // BLOCK_K * BLOCK_K
    # The rest of k first, in a tile moved back over numbers that come later.
    last = tl.maximum(0, k - BLOCK_K)
    a, b = piece(a_ptr, b_ptr, rows, cols, last + steps, k, whole, m, n, a_m, a_k, b_k, b_n)
    acc = tl.dot(a, b, input_precision="ieee")
    for start in range(0, whole, BLOCK_K):
        a, b = piece(a_ptr, b_ptr, rows, cols, start + steps, k, start, m, n, a_m, a_k, b_k, b_n)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        matmul_kernel[(triton.cdiv(m, 32) * triton.cdiv(n, 64),)](
            a, b, out, m, n, k, *a.stride(), *b.stride(), BLOCK_M=32, BLOCK_N=64, BLOCK_K=32, GROUP=4
        )
    return out
