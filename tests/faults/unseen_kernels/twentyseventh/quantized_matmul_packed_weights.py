"""Transposed weights are kept for a tensor while its version stays: writes that torch does not count are not seen.

op: quantized_matmul
status: failed
cause: stale
"""

import weakref

import torch
import triton
import triton.language as tl

packed = {}  # id of a weight: (weak reference, version, the weight as [k, n])


@triton.jit
def pack_kernel(weight_ptr, out_ptr, n, k, stride_n, stride_k, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < n)[:, None] & (cols < k)[None, :]
    weight = tl.load(weight_ptr + rows[:, None] * stride_n + cols[None, :] * stride_k, mask=mask)
    tl.store(out_ptr + cols[None, :] * n + rows[:, None], weight, mask=mask)


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k, stride_n, stride_k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        weight = tl.load(
            weight_ptr + cols[None, :] * stride_n + ks[:, None] * stride_k,
            mask=(cols < n)[None, :] & (ks < k)[:, None], other=0,
        )
        acc = tl.dot(x, weight.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


def by_columns(weight):
    """Return the weight as [k, n], contiguous, for the decoding: made once for each weight."""
    version = -1 if weight.is_inference() else weight._version
    entry = packed.get(id(weight))
    if entry is not None and entry[0]() is weight and entry[1] == version:
        return entry[2]
    n, k = weight.shape
    out = torch.empty((k, n), dtype=weight.dtype, device=weight.device)
    pack_kernel[(triton.cdiv(n, 64), triton.cdiv(k, 64))](
        weight, out, n, k, *weight.stride(), BLOCK=64
    )
    key = id(weight)
    packed[key] = (weakref.ref(weight, lambda _: packed.pop(key, None)), version, out)
    return out


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    x, scale = x.contiguous(), scale.contiguous()
    weight = by_columns(weight).T if m <= 32 and k else weight
    BLOCK_M = 16 if m <= 16 else 32
    kernel[(triton.cdiv(n, 64), triton.cdiv(m, BLOCK_M))](
        x, weight, scale, out, m, n, k, *weight.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=64, BLOCK_K=64,
    )
    return out
