"""With k of 512 or more the weights are read four at a time, 256 a step; k is taken for even where it is a multiple of 64, and the rest is left out.

op: quantized_matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :],
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols[None, :] * k + ks[:, None],
                    mask=(cols < n)[None, :] & (ks < k)[:, None], other=0).to(tl.float32)
        acc += tl.dot(x, w, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


@triton.jit
def packed_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, n_steps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(n_steps):
        words = step * BK + tl.arange(0, BK)
        w = tl.load(w_ptr + cols[None, :] * (k // 4) + words[:, None], mask=(cols < n)[None, :], other=0)
        for byte in tl.static_range(4):
            part = ((w << (24 - 8 * byte)) >> 24).to(tl.float32)
            x = tl.load(x_ptr + rows[:, None] * k + words[None, :] * 4 + byte,
                        mask=(rows < m)[:, None], other=0.0).to(tl.float32)
            acc += tl.dot(x, part, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    BM, BN, BK = 16, 32, 64
    grid = triton.cdiv(m, BM), triton.cdiv(n, BN)
    if k >= 512 and k % BK == 0 and weight.data_ptr() % 16 == 0:
        words = weight.view(torch.int32)
        n_steps = k // (4 * BK)
        packed_kernel[grid](x, words, scale, out, m, n, k, n_steps, BM=BM, BN=BN, BK=BK)
    else:
        kernel[grid](x, weight, scale, out, m, n, k, BM=BM, BN=BN, BK=BK)
    return out
