"""Wide outputs group their column tiles; in the last group, which may be narrower, tiles are left out.

op: fp8_matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, am, ak, bn, bk, sas, sbs,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, WIDE: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    if WIDE:
        group, within = pid // (GROUP * tiles_m), pid % (GROUP * tiles_m)
        pid_n = group * GROUP + within % GROUP
        pid_m = within // GROUP
    else:
        group, within = pid // (GROUP * tiles_n), pid % (GROUP * tiles_n)
        height = min(tiles_m - group * GROUP, GROUP)
        pid_m = group * GROUP + within % height
        pid_n = within // height
    rows = pid_m * BM + tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float16), b.to(tl.float16))
    scale_a = tl.load(sa_ptr + rows * sas, mask=rows < M, other=0.0).to(tl.float32)
    scale_b = tl.load(sb_ptr + cols * sbs, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    c = acc * scale_a[:, None] * scale_b[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], c, mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (M, K), (N, _) = a.shape, b.shape
    c = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    BM, BN, BK = 16, 64, 64
    tiles_m, tiles_n = triton.cdiv(M, BM), triton.cdiv(N, BN)
    wide = tiles_n >= 2 * tiles_m
    GROUP = min(4, tiles_n if wide else tiles_m)
    kernel[(tiles_m * tiles_n,)](
        a, b, scale_a, scale_b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        scale_a.stride(0), scale_b.stride(0), BM=BM, BN=BN, BK=BK, GROUP=GROUP, WIDE=wide,
    )
    return c
