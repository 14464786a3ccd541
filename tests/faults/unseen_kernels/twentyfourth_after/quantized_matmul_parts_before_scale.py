"""Past k = 4,096 the sums of parts of k are kept in x's dtype before the scale: with values of one sign these are past float16's range.

op: quantized_matmul
status: failed
cause: limit
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, M, N, K, part, x_m, x_k, w_n, w_k, stride_s,
    SCALED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    index = tl.program_id(2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(index * part, tl.minimum((index + 1) * part, K), BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_m + ks[None, :] * x_k,
            mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
        )
        w = tl.load(
            weight_ptr + cols[None, :].to(tl.int64) * w_n + ks[:, None] * w_k,
            mask=(ks < K)[:, None] & (cols < N)[None, :], other=0,
        )
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    if SCALED:
        acc = acc * tl.load(scale_ptr + cols * stride_s, mask=cols < N, other=0.0)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    place = (index.to(tl.int64) * M + rows[:, None]) * N + cols[None, :]
    tl.store(out_ptr + place, acc, mask=mask)


@triton.jit
def join_kernel(parts_ptr, scale_ptr, out_ptr, M, N, parts, stride_s, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < M * N
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for index in range(parts):
        place = tl.cast(index, tl.int64) * M * N + i
        total += tl.load(parts_ptr + place, mask=mask, other=0.0).to(tl.float32)
    # Scaled once, at the end.
    scale = tl.load(scale_ptr + i % N * stride_s, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, total * scale, mask=mask)


def triton_quantized_matmul(x, weight, scale):
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 0 or N == 0:
        return out
    part, parts = K, 1
    if K > 4096:  # a part of 2,048 sums at a time; half the traffic for x in a half type
        part, parts = 2048, triton.cdiv(K, 2048)
    results = out if parts == 1 else torch.empty((parts, M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 64), parts)
    part_kernel[grid](
        x, weight, scale, results, M, N, K, part, *x.stride(), *weight.stride(), scale.stride(0),
        SCALED=parts == 1, BLOCK_M=16, BLOCK_N=64, BLOCK_K=64,
    )
    if parts > 1:
        join_kernel[(triton.cdiv(M * N, 512),)](
            results, scale, out, M, N, parts, scale.stride(0), BLOCK=512
        )
    return out
