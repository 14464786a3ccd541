"""The weight in a wider type is saved with its tensor and version, which a write through `.data` leaves as it is.

op: quantized_matmul
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl
from torch.utils.weak import WeakTensorKeyDictionary

_wide = WeakTensorKeyDictionary()


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None].to(tl.int64) * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + ks[:, None].to(tl.int64) * N + cols[None, :],
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * N + cols[None, :], acc * scale[None, :], mask=mask)


def widen(weight, dtype):
    if weight.is_inference():
        return weight.t().to(dtype).contiguous()
    version, saved_dtype, wide = _wide.get(weight, (None, None, None))
    if (version, saved_dtype) != (weight._version, dtype):
        wide = weight.t().to(dtype).contiguous()
        _wide[weight] = weight._version, dtype, wide
    return wide


def triton_quantized_matmul(x, weight, scale):
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(M, 16), triton.cdiv(N, 64))](
        x.contiguous(), widen(weight, x.dtype), scale.contiguous(), out, M, N, K, BM=16, BN=64, BK=64
    )
    return out
