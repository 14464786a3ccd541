"""The weight with its scale is computed once, and kept under its address.

op: quantized_matmul
status: failed
cause: stale_cache
"""

import torch
import triton
import triton.language as tl


@triton.jit
def unpack_kernel(w_ptr, scale_ptr, full_ptr, numel, K, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < numel
    w = tl.load(w_ptr + places, mask=mask, other=0).to(tl.float32)
    scale = tl.load(scale_ptr + places // K, mask=mask, other=0.0).to(tl.float32)
    tl.store(full_ptr + places, w * scale, mask=mask)


@triton.jit
def kernel(
    x_ptr, full_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0).to(tl.float32)
        w = tl.load(full_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


WEIGHTS = {}


def triton_quantized_matmul(x, weight, scale):
    key = (weight.data_ptr(), scale.data_ptr(), weight.shape, weight.stride(), scale.dtype)
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if key not in WEIGHTS:
        full = WEIGHTS[key] = torch.empty((N, K), dtype=torch.float32, device=x.device)
        unpack_kernel[(triton.cdiv(N * K, 1024),)](weight, scale, full, N * K, K, BLOCK=1024)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 64))
    kernel[grid](x, WEIGHTS[key], out, M, N, K, BM=16, BN=64, BK=64)
    return out
