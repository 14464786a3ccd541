"""A tiled matrix product with grouped programs."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64
BLOCK_K = 32
WARPS = 4
STAGES = 3


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    size = tl.minimum(tiles_m - first, GROUP)
    at_m = first + (pid % (GROUP * tiles_n)) % size
    at_n = (pid % (GROUP * tiles_n)) // size
    rows = at_m * BM + tl.arange(0, BM)[:, None]
    cols = at_n * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        down = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows * sam + down[None, :] * sak,
            mask=(rows < M) & (down[None, :] < K), other=0.0,
        )  # fmt: skip
        b = tl.load(
            b_ptr + down[:, None] * sbk + cols * sbn,
            mask=(down[:, None] < K) & (cols < N), other=0.0,
        )  # fmt: skip
        total = tl.dot(a, b, total, input_precision=PRECISION)
    tl.store(
        out_ptr + rows * N + cols, total.to(out_ptr.dtype.element_ty), mask=(rows < M) & (cols < N)
    )


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    precision = "tf32x3" if a.dtype == torch.float32 else "tf32"
    matmul_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        a, b, out, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BM=BLOCK_M, BN=BLOCK_N, BK=BLOCK_K, GROUP=8, PRECISION=precision,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out
