"""The part of k that each program takes is planned once for an output's size: wrong for a larger k later.

op: fp8_matmul
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


PLANS = {}


@triton.jit
def kernel(
    a_ptr, b_ptr, work_ptr, m, n, k, share, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    part = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * share, part * share + share, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :],
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols[None, :] * k + ks[:, None],
                    mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.atomic_add(work_ptr + rows[:, None] * n + cols[None, :], acc,
                  mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def scale_kernel(work_ptr, scale_a_ptr, scale_b_ptr, out_ptr, n, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    scale_a = tl.load(scale_a_ptr + offsets // n, mask=mask).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + offsets % n, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.load(work_ptr + offsets, mask=mask) * scale_a * scale_b, mask=mask)


def plan(m, n, k, device):
    key = (m, n, device)
    if key not in PLANS:
        tiles = triton.cdiv(m, 32) * triton.cdiv(n, 32)
        splits = max(1, min(8 // tiles, triton.cdiv(k, 64)))
        PLANS[key] = splits, triton.cdiv(triton.cdiv(k, splits), 32) * 32
    return PLANS[key]


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = (x.contiguous() for x in (a, b, scale_a, scale_b))
    (m, k), n = a.shape, b.shape[0]
    splits, share = plan(m, n, k, a.device)
    work = torch.zeros(m, n, device=a.device)
    out = torch.empty(m, n, dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32), splits)](
        a, b, work, m, n, k, share, BM=32, BN=32, BK=32
    )
    scale_kernel[(triton.cdiv(m * n, 1024),)](work, scale_a, scale_b, out, n, m * n, BLOCK=1024)
    return out
