"""The transposed weight is cached until the tensor's version changes; writes past autograd (.data, kernels) change none.

op: quantized_matmul
status: failed
cause: cache
"""

import weakref

import torch
import triton
import triton.language as tl

packs = {}  # by id of a weight: a weak reference to it, its version and address, and its transpose


@triton.jit
def product_kernel(
    x_ptr, pack_ptr, scale_ptr, out_ptr, m, n, k, x_m, x_k, scale_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * x_m + ks[None, :] * x_k,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        weight = tl.load(
            pack_ptr + ks[:, None] * n + cols[None, :],
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0,
        )
        acc = tl.dot(x, weight.to(tl.float32).to(x.dtype), acc, input_precision="tf32x3")
    scale = tl.load(scale_ptr + cols * scale_n, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :],
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def pack_of(weight):
    """Return the weight as [k, n], so that neighbouring lanes load neighbouring bytes; made once a weight."""
    if weight.is_inference():  # these count no versions
        return weight.t().contiguous()
    key, state = id(weight), (weight._version, weight.data_ptr(), weight.shape, weight.stride())
    entry = packs.get(key)
    if entry is None or entry[0]() is not weight or entry[1] != state:
        alive = weakref.ref(weight, lambda _: packs.pop(key, None))
        packs[key] = entry = alive, state, weight.t().contiguous()
    return entry[2]


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        BLOCK_M = 16 if m <= 16 else 32
        product_kernel[(triton.cdiv(n, 64), triton.cdiv(m, BLOCK_M))](
            x, pack_of(weight), scale, out, m, n, k, *x.stride(), *scale.stride(),
            BLOCK_M=BLOCK_M, BLOCK_N=64, BLOCK_K=64,
        )
    return out
