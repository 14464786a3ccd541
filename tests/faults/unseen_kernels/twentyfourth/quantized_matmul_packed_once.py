"""The weight is packed once for each version that torch counts: a weight written through .data keeps its old values.

op: quantized_matmul
status: failed
cause: caching
"""

import weakref

import torch
import triton
import triton.language as tl

_packed = {}


def pack(weight):
    """Return the weight as [k, n], made again where torch has counted a change in place."""
    if weight.is_inference():  # torch counts no versions there
        return weight.t().contiguous()
    key = id(weight)
    entry = _packed.get(key)
    if entry is None or entry[0]() is not weight or entry[1] != weight._version:
        watcher = weakref.ref(weight, lambda ref: _packed.pop(key, None) if _packed.get(key, (0,))[0] is ref else None)
        entry = _packed[key] = watcher, weight._version, weight.t().contiguous()
    return entry[2]


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k, x_m, x_k, scale_step,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        at = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * x_m + at[None, :] * x_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0
        )
        w = tl.load(
            weight_ptr + at[:, None] * n + cols[None, :], mask=(at < k)[:, None] & (cols < n)[None, :], other=0
        )
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * scale_step, mask=cols < n, other=0.0).to(tl.float32)
    out = acc * scale[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        BLOCK_M, BLOCK_N, BLOCK_K = 16 if m <= 16 else 64, 64, 64
        kernel[(triton.cdiv(n, BLOCK_N), triton.cdiv(m, BLOCK_M))](
            x, pack(weight), scale, out, m, n, k, *x.stride(), scale.stride(0),
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        )
    return out
