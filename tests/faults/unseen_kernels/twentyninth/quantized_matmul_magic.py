"""Right: weights become floating by bits, the byte below those of 2^23, then 2^23 + 128 subtracted; k is walked from its end.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def to_float(weight):
    """int8 to float32 without a conversion: 2^23 + (weight + 128), less 2^23 + 128; -128 too."""
    byte = (weight.to(tl.uint8, bitcast=True) ^ 128).to(tl.int32)
    return (byte | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0


@triton.jit
def wide(x):
    """bfloat16 as float32: exact, and older devices and the interpreter have no product of it."""
    if x.dtype == tl.bfloat16:
        x = x.to(tl.float32)
    return x


@triton.jit
def product_kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k, x_m, x_k, w_n, w_k, scale_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)  # transposed: the weights are the left factor
    blocks = tl.cdiv(k, BLOCK_K)
    for block in range(0, blocks):
        # The last tile reaches below 0: masked there, not at the end.
        ks = k - (block + 1) * BLOCK_K + tl.arange(0, BLOCK_K).to(tl.int64)
        x = tl.load(
            x_ptr + rows[None, :] * x_m + ks[:, None] * x_k,
            mask=(rows < m)[None, :] & (ks >= 0)[:, None], other=0.0,
        )
        weight = tl.load(
            weight_ptr + cols[:, None] * w_n + ks[None, :] * w_k,
            mask=(cols < n)[:, None] & (ks >= 0)[None, :], other=0,
        )
        x = wide(x)
        acc = tl.dot(to_float(weight).to(x.dtype), x, acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * scale_n, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + rows[None, :] * n + cols[:, None], acc * scale[:, None],
        mask=(rows < m)[None, :] & (cols < n)[:, None],
    )


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    BLOCK_M = min(64, max(16, triton.next_power_of_2(m)))
    product_kernel[(triton.cdiv(n, 64), triton.cdiv(m, BLOCK_M))](
        x, weight, scale, out, m, n, k, *x.stride(), *weight.stride(), scale.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=64, BLOCK_K=64,
    )
    return out
