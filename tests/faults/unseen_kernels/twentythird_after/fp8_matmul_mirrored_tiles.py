"""If a and b are the same tensor, tiles are computed once and mirrored after they were scaled: with different scales the product is not symmetric.

op: fp8_matmul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k,
    SAME: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    i, j = tl.program_id(0), tl.program_id(1)
    if SAME:
        if j > i:  # the mirror image of a tile below the diagonal
            return
    rows = i * BLOCK + tl.arange(0, BLOCK)
    cols = j * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + cols[None, :].to(tl.int64) * k + ks[:, None],
            mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0,
        )
        acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = acc * scale_a[:, None] * scale_b[None, :]
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :], out, mask=inside)
    if SAME:
        if j < i:
            tl.store(out_ptr + cols[None, :].to(tl.int64) * n + rows[:, None], out, mask=inside)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    same = a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride()
    a = a.contiguous()
    b = a if same else b.contiguous()
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel():
        grid = triton.cdiv(m, 64), triton.cdiv(n, 64)
        kernel[grid](a, b, scale_a, scale_b, out, m, n, k, SAME=same, BLOCK=64, BLOCK_K=64)
    return out
