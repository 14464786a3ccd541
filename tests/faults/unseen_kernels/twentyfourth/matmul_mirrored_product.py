"""Right: where b is a's own transpose, by address, shape and strides, only half of the tiles are computed, and mirrored.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_of(a_ptr, b_ptr, i, j, m, n, k, a_m, a_k, b_k, b_n, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = i.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = j.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    # From the end of k to its beginning: the short tile comes first.
    for back in range(0, tl.cdiv(k, BLOCK_K)):
        at = ((tl.cdiv(k, BLOCK_K) - 1 - back) * BLOCK_K + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * a_m + at[None, :] * a_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0
        )
        b = tl.load(
            b_ptr + at[:, None] * b_k + cols[None, :] * b_n, mask=(at < k)[:, None] & (cols < n)[None, :], other=0.0
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    return acc


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n,
    MIRROR: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(0)
    across = tl.cdiv(n, BLOCK)
    if MIRROR:
        # pid counts the lower triangle row by row: i is the largest number with i * (i + 1) / 2 <= pid.
        i = ((tl.sqrt(8.0 * pid.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int32)
        while i * (i + 1) // 2 > pid:  # the root is rounded
            i -= 1
        while (i + 1) * (i + 2) // 2 <= pid:
            i += 1
        j = pid - i * (i + 1) // 2
    else:
        i, j = pid // across, pid % across
    acc = tile_of(a_ptr, b_ptr, i, j, m, n, k, a_m, a_k, b_k, b_n, BLOCK, BLOCK_K).to(out_ptr.dtype.element_ty)
    rows = i.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = j.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=inside)
    if MIRROR:
        if i != j:  # a tile on the diagonal is its own mirror
            tl.store(out_ptr + cols[None, :] * n + rows[:, None], acc, mask=inside)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        mirror = m == n and a.data_ptr() == b.data_ptr() and a.stride() == b.stride()[::-1]
        down = triton.cdiv(m, 64)
        programs = down * (down + 1) // 2 if mirror else down * triton.cdiv(n, 64)
        kernel[(programs,)](a, b, out, m, n, k, *a.stride(), *b.stride(), MIRROR=mirror, BLOCK=64, BLOCK_K=32)
    return out
