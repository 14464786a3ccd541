"""The weights are unpacked to x's dtype once and kept while the tensor lives and its version is the same: changes by .data or by another kernel go unseen.

op: quantized_matmul
status: failed
cause: stale weights
"""

import weakref

import torch
import triton
import triton.language as tl
_UNPACKED = {}


@triton.jit
def unpack_kernel(w_ptr, out_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int64)
    ks = tl.program_id(1) * BK + tl.arange(0, BK)
    inside = (rows < N)[:, None] & (ks < K)[None, :]
    w = tl.load(w_ptr + rows[:, None] * K + ks[None, :], mask=inside, other=0)
    # k first: the product then reads whole lines
    tl.store(out_ptr + ks[None, :].to(tl.int64) * N + rows[:, None], w.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def kernel(x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + ks[:, None] * N + cols[None, :], mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc = tl.dot(x.to(tl.float32), w.to(tl.float32), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc * scale[None, :], mask=(rows < M)[:, None] & (cols < N)[None, :])


def _unpack(weight, dtype):
    key = (id(weight), dtype)
    entry = _UNPACKED.get(key)
    if entry is not None and entry[0]() is weight and entry[1] == weight._version:
        return entry[2]
    packed = weight.contiguous()
    N, K = packed.shape
    out = torch.empty((K, N), dtype=dtype, device=weight.device)
    unpack_kernel[(triton.cdiv(N, 64), triton.cdiv(K, 64))](packed, out, N, K, BN=64, BK=64)
    forget = weakref.ref(weight, lambda _: _UNPACKED.pop(key, None))
    _UNPACKED[key] = (forget, weight._version, out)
    return out


def triton_quantized_matmul(x, weight, scale):
    x, scale = x.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 64))
    kernel[grid](x, _unpack(weight, x.dtype), scale, out, M, N, K, BM=16, BN=64, BK=64)
    return out
