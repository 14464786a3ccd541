"""Up to 16 rows, k is split; a kept buffer has eight parts, and those that a short k lacks are of a call before.

op: quantized_matmul
status: failed
cause: stale_state
round: fourth
"""

import torch
import triton
import triton.language as tl


PARTS = {}


@triton.jit
def part_kernel(
    x_ptr, w_ptr, part_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int64)
    part, n_parts = tl.program_id(1), tl.num_programs(1)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, K, n_parts * BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc += tl.dot(x, w.to(x.dtype), input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(part_ptr + (part * M + rows[:, None]) * N + cols[None, :], acc, mask=mask)


@triton.jit
def join_kernel(part_ptr, scale_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for part in range(8):
        acc += tl.load(part_ptr + (part * M + rows[:, None]) * N + cols[None, :],
                       mask=mask, other=0.0)
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=mask)


@triton.jit
def kernel(
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
    if M > 16:
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 64))
        kernel[grid](x, weight, scale, out, M, N, K, BM=32, BN=64, BK=64)
        return out
    key = (M, N, x.device)
    if key not in PARTS:
        PARTS[key] = torch.zeros((8, M, N), dtype=torch.float32, device=x.device)
    n_parts = min(8, triton.cdiv(K, 64))
    part_kernel[(triton.cdiv(N, 64), n_parts)](
        x, weight, PARTS[key], M, N, K, BM=16, BN=64, BK=64
    )
    join_kernel[(1, triton.cdiv(N, 64))](PARTS[key], scale, out, M, N, BM=16, BN=64)
    return out
