"""Up to four rows of x take a path that reads a weight row by its first stride alone: wrong for few rows and a transposed weight together.

op: quantized_matmul
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def few(x_ptr, w_ptr, s_ptr, out_ptr, n, k, w_n, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(1)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * k + at, mask=at < k, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols[:, None] * w_n + at[None, :], mask=(cols < n)[:, None] & (at < k)[None, :], other=0)
        acc += w.to(tl.float32) * x[None, :]
    s = tl.load(s_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n + cols, tl.sum(acc, axis=1) * s, mask=cols < n)


@triton.jit
def many(x_ptr, w_ptr, s_ptr, out_ptr, m, n, k, w_n, w_k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + at[None, :], mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[:, None] * w_n + at[None, :] * w_k, mask=(cols < n)[:, None] & (at < k)[None, :], other=0)
        acc += tl.dot(x.to(tl.float32), tl.trans(w.to(tl.float32)), input_precision="ieee")
    s = tl.load(s_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * s[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x, scale = x.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m <= 4:
        few[(triton.cdiv(n, 32), m)](x, weight, scale, out, n, k, weight.stride(0), BN=32, BK=128)
    else:
        many[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
            x, weight, scale, out, m, n, k, *weight.stride(), BM=32, BN=32, BK=64,
        )
    return out
