"""Few rows of a go without tensor cores; their products are float16, and those past 65504 are infinite.

op: fp8_matmul
status: failed
cause: range
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        a_at = rows[:, None].to(tl.int64) * k + ks[None, :]
        b_at = cols[None, :].to(tl.int64) * k + ks[:, None]
        a = tl.load(a_ptr + a_at, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + b_at, mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0)
        acc += tl.dot(a.to(tl.float16), b.to(tl.float16))
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    at = rows[:, None].to(tl.int64) * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + at, acc * sa[:, None] * sb[None, :], mask=mask)


@triton.jit
def vector_kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, n, k, N: tl.constexpr, K: tl.constexpr
):
    row = tl.program_id(1)
    cols = tl.program_id(0) * N + tl.arange(0, N)
    acc = tl.zeros((N, K), dtype=tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        a = tl.load(a_ptr + row * k + ks).to(tl.float16)
        b_at = cols[:, None].to(tl.int64) * k + ks[None, :]
        b = tl.load(b_ptr + b_at, mask=(cols < n)[:, None], other=0.0).to(tl.float16)
        # Two numbers of four bits have a product of eight: exact, and two at once in float16.
        acc += (a[None, :] * b).to(tl.float32)
    sa = tl.load(sa_ptr + row).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n + cols, tl.sum(acc, axis=1) * sa * sb, mask=cols < n)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = (t.contiguous() for t in (a, b, scale_a, scale_b))
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if m <= 4 and k % 128 == 0 and n >= 4 * m:
        grid = (triton.cdiv(n, 32), m)
        vector_kernel[grid](a, b, scale_a, scale_b, out, n, k, N=32, K=128)
    else:
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        tile_kernel[grid](a, b, scale_a, scale_b, out, m, n, k, M=64, N=64, K=64)
    return out
