"""The parts of a split K are summed over the whole workspace, which stays for a shape of the output: a smaller K leaves parts of the larger one before.

op: fp8_matmul
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_workspaces = {}


@triton.jit
def partial(a_ptr, b_ptr, work_ptr, M, N, K, KS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    part = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, KS, BK):
        ks = part * KS + start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[:, None] * K + ks[None, :], mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0)
        acc += tl.dot(a, tl.trans(b), input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(work_ptr + part * M * N + rows[:, None] * N + cols[None, :], acc, mask=mask)


@triton.jit
def combine(work_ptr, sa_ptr, sb_ptr, out_ptr, n, N, parts, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(parts):
        total += tl.load(work_ptr + part * n + at, mask=mask, other=0.0)
    sa = tl.load(sa_ptr + at // N, mask=mask).to(tl.float32)
    sb = tl.load(sb_ptr + at % N, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, total * sa * sb, mask=mask)


def workspace(parts, M, N, device):
    work = _workspaces.get((M, N, device))
    if work is None or work.shape[0] < parts:
        work = torch.empty((parts, M, N), dtype=torch.float32, device=device)
        _workspaces[M, N, device] = work
    return work


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous().to(torch.float16), b.contiguous().to(torch.float16)
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    parts = triton.cdiv(K, 128)
    work = workspace(parts, M, N, a.device)
    partial[(triton.cdiv(M, 32), triton.cdiv(N, 32), parts)](a, b, work, M, N, K, KS=128, BM=32, BN=32, BK=64)
    combine[(triton.cdiv(M * N, 1024),)](
        work, scale_a.contiguous(), scale_b.contiguous(), out, M * N, N, work.shape[0], BLOCK=1024
    )
    return out
