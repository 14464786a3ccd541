"""From 8 tile rows on they go in groups of 8, the last one too, where fewer are left: some of its tiles stay unwritten.

op: matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn, GROUP: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    in_group = GROUP * tiles_n
    first = pid // in_group * GROUP
    height = GROUP
    pid_m = first + pid % height
    pid_n = pid % in_group // height
    rows = pid_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = pid_n.to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0).to(tl.float32)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    BM, BN, BK = 64, 64, 32
    tiles_m, tiles_n = triton.cdiv(m, BM), triton.cdiv(n, BN)
    GROUP = 8 if tiles_m >= 8 and tiles_n > 1 else 1
    kernel[(tiles_m * tiles_n,)](
        a, b, out, m, n, k, *a.stride(), *b.stride(), GROUP=GROUP, BM=BM, BN=BN, BK=BK
    )
    return out
