"""The packed weight is kept until the tensor's version changes: a write through .data, or by another kernel, is not seen.

op: quantized_matmul
status: failed
cause: cache
"""

import torch
import triton
import triton.language as tl
from torch.utils.weak import WeakIdKeyDictionary

PACKED = WeakIdKeyDictionary()  # weight -> its version, and a copy [k, n]


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        w = tl.load(
            w_ptr + ks[:, None].to(tl.int64) * n + cols[None, :],
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0,
        )
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="tf32x3")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    at = rows[:, None].to(tl.int64) * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + at, acc * scale[None, :], mask=mask)


def pack(weight):
    """Return weight as [k, n], from the last call if nobody has written to it since."""
    if weight.is_inference():  # has no version
        return weight.t().contiguous()
    version, copy = PACKED.get(weight, (None, None))
    if version != weight._version:
        copy = torch.empty(weight.shape[::-1], dtype=weight.dtype, device=weight.device)
        copy.copy_(weight.t())
        PACKED[weight] = weight._version, copy
    return copy


def triton_quantized_matmul(x, weight, scale):
    x, scale = x.contiguous(), scale.contiguous()
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](
            x, pack(weight), scale, out, m, n, k, BLOCK_M=16, BLOCK_N=64, BLOCK_K=64
        )
    return out
