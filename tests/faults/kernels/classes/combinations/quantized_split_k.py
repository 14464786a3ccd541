"""Few rows and a long k: four parts in float32, scaled when they are joined.

op: quantized_matmul
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    x_ptr, w_ptr, part_ptr, M, N, K, per_split,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    first = tl.program_id(2) * per_split
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, min(first + per_split, K), BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc += tl.dot(x, w.to(x.dtype), input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    base = part_ptr + tl.program_id(2).to(tl.int64) * M * N
    tl.store(base + rows[:, None] * N + cols[None, :], acc, mask=mask)


@triton.jit
def join_kernel(part_ptr, scale_ptr, out_ptr, numel, N, splits, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < numel
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(0, splits):
        acc += tl.load(part_ptr + split * numel + places, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + places % N, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, acc * scale, mask=mask)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    splits = 4 if M <= 16 and K >= 512 else 1
    per_split = triton.cdiv(triton.cdiv(K, splits), 64) * 64
    parts = torch.empty((splits, M, N), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 64), splits)
    part_kernel[grid](x, weight, parts, M, N, K, per_split, BM=16, BN=64, BK=64)
    join_kernel[(triton.cdiv(M * N, 512),)](parts, scale, out, M * N, N, splits, BLOCK=512)
    return out
