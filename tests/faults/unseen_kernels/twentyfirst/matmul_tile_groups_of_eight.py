"""The tiles are ordered in groups of eight rows of tiles: the last group, if it is smaller, is taken for a full one.

op: matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    if tiles_m <= GROUP:
        pid_m = pid % tiles_m
        pid_n = pid // tiles_m
    else:
        group = pid // (GROUP * tiles_n)
        within = pid % (GROUP * tiles_n)
        pid_m = group * GROUP + within % GROUP
        pid_n = within // GROUP
    rows = pid_m * BM + tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * sam + ks[None, :] * sak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        ).to(tl.float32)
        b = tl.load(
            b_ptr + ks[:, None] * sbk + cols[None, :] * sbn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0
        ).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty(m, n, dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64) * triton.cdiv(n, 64),)](
        a, b, out, m, n, k, *a.stride(), *b.stride(), BM=64, BN=64, BK=32, GROUP=8
    )
    return out
