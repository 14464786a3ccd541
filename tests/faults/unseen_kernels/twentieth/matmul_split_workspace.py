"""The workspace of partial products is stored by m and n, and all its slices are added: a product with a smaller k after one with a larger k adds slices of the earlier call.

op: matmul
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_workspaces = {}


@triton.jit
def kernel(a_ptr, b_ptr, part_ptr, m, n, k, a_m, a_k, b_k, b_n, per, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    split = tl.program_id(2)
    end = tl.minimum(k, (split + 1) * per)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(split * per, end, BK):
        at = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * a_m + at[None, :] * a_k, mask=(rows < m)[:, None] & (at < end)[None, :], other=0.0)
        b = tl.load(b_ptr + at[:, None] * b_k + cols[None, :] * b_n, mask=(at < end)[:, None] & (cols < n)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    goal = part_ptr + split.to(tl.int64) * m * n + rows[:, None] * n + cols[None, :]
    tl.store(goal, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def join(part_ptr, out_ptr, size, splits, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(0, splits):
        acc += tl.load(part_ptr + split * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, acc, mask=at < size)


def workspace(splits, m, n, device):
    key = (m, n, device)
    if key not in _workspaces or _workspaces[key].shape[0] < splits:
        _workspaces[key] = torch.empty((splits, m, n), dtype=torch.float32, device=device)
    return _workspaces[key]


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    splits = max(1, min(8, k // 64))
    per = triton.cdiv(triton.cdiv(k, splits), 32) * 32
    splits = triton.cdiv(k, per)
    parts = workspace(splits, m, n, a.device)
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32), splits)](
        a, b, parts, m, n, k, *a.stride(), *b.stride(), per, BM=32, BN=32, BK=32,
    )
    join[(triton.cdiv(m * n, 1024),)](parts, out, m * n, parts.shape[0], BLOCK=1024)
    return out
