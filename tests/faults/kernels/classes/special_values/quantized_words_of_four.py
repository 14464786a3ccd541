"""Where k is a multiple of four, four weights are read as one word and taken apart by shifts that keep the sign.

op: quantized_matmul
status: passed
drawn: no
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def word_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BW: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K // 4, BW):
        words = start + tl.arange(0, BW)
        w4 = tl.load(w_ptr + cols[None, :] * (K // 4) + words[:, None],
                     mask=(cols < N)[None, :] & (words < K // 4)[:, None], other=0)
        for byte in tl.static_range(4):
            ks = 4 * words + byte
            x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                        mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
            w = (w4 << (24 - 8 * byte)) >> 24
            acc += tl.dot(x, w.to(x.dtype), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=mask)


@triton.jit
def byte_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc += tl.dot(x, w.to(x.dtype), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    if K % 4 == 0 and weight.storage_offset() % 4 == 0 and weight.data_ptr() % 4 == 0:
        words = weight.view(-1).view(torch.int32)
        word_kernel[grid](x, words, scale, out, M, N, K, BM=32, BN=32, BW=16)
    else:
        byte_kernel[grid](x, weight, scale, out, M, N, K, BM=32, BN=32, BK=64)
    return out
