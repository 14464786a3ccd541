"""Stream-k: the first programs do one step of the remainder each, but the starts do not move with them: steps are done twice and the last ones never, where there are more than 64 and no multiple.

op: matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def stream_kernel(
    a_ptr, b_ptr, sum_ptr, m, n, k, am, ak, bk, bn, per, rest,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid = tl.program_id(0)
    steps = tl.cdiv(k, BK)
    tiles_n = tl.cdiv(n, BN)
    # the first `rest` programs do one step more
    at = pid * per
    end = at + per
    if pid < rest:
        end += 1
    while at < end:
        tile = at // steps
        first = at % steps
        count = tl.minimum(end - at, steps - first)
        rows = tile // tiles_n * BM + tl.arange(0, BM)
        cols = tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(first, first + count):
            ks = step * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
            b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn, mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)
            acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
        inside = (rows < m)[:, None] & (cols < n)[None, :]
        tl.atomic_add(sum_ptr + rows[:, None] * n + cols[None, :], acc, mask=inside)
        at += count


@triton.jit
def round_kernel(sum_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(sum_ptr + at, mask=at < count, other=0.0), mask=at < count)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    sums = torch.zeros((m, n), dtype=torch.float32, device=a.device)
    steps = triton.cdiv(m, 64) * triton.cdiv(n, 64) * triton.cdiv(k, 32)
    programs = min(steps, 64)
    stream_kernel[(programs,)](
        a, b, sums, m, n, k, *a.stride(), *b.stride(), steps // programs, steps % programs,
        BM=64, BN=64, BK=32,
    )
    round_kernel[(triton.cdiv(m * n, 1024),)](sums, out, m * n, BLOCK=1024)
    return out
