"""The packed copy of a transposed b is kept while torch's version counter stands: a write by a Triton kernel or by .data is missed.

op: matmul
status: failed
cause: stale
"""

import torch
import triton
import triton.language as tl
from torch.utils.weak import WeakTensorKeyDictionary

_packed = WeakTensorKeyDictionary()  # a tensor that owns memory: its packed views


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    cols = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + cols[None, :],
            mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def pack(b):
    """Return b with n contiguous. A transposed weight is packed once, until torch changes it in place."""
    if b.stride(1) == 1:
        return b
    if b.is_inference():  # has no version
        return b.contiguous()
    owner = b if b._base is None else b._base
    views = _packed.setdefault(owner, {})
    key = (b.data_ptr(), tuple(b.shape), b.stride(), b.dtype)
    version, copy = views.get(key, (None, None))
    if version != b._version:
        copy = b.contiguous()
        views[key] = b._version, copy
    return copy


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel():
        b = pack(b) if K else b
        matmul_kernel[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](
            a, b, out, M, N, K, *a.stride(), b.stride(0), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32
        )
    return out
