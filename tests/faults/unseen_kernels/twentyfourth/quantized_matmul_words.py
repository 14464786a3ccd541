"""Right: where rows begin at whole words, four int8 weights are loaded as one int32, and x in four combs of every fourth column.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k, x_m, x_k, w_n, w_k, scale_step,
    WORDS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    x_ptrs = x_ptr + rows[:, None] * x_m
    if WORDS:
        for start in range(0, k // 4, BLOCK_K):
            at = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
            there = (at < k // 4)[:, None] & (cols < n)[None, :]
            word = tl.load(weight_ptr + cols[None, :] * w_n + at[:, None], mask=there, other=0)
            for byte in tl.static_range(4):
                # Up to the top of the word, and down again with its sign.
                w = (word << (24 - 8 * byte)) >> 24
                x = tl.load(
                    x_ptrs + (4 * at + byte)[None, :] * x_k, mask=(rows < m)[:, None] & (at < k // 4)[None, :], other=0.0
                )
                acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    else:
        for start in range(0, k, BLOCK_K):
            at = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
            there = (at < k)[:, None] & (cols < n)[None, :]
            w = tl.load(weight_ptr + cols[None, :] * w_n + at[:, None] * w_k, mask=there, other=0)
            x = tl.load(x_ptrs + at[None, :] * x_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0)
            acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * scale_step, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :],
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    words = (
        k % 4 == 0 and k > 0 and weight.stride(1) == 1 and weight.stride(0) % 4 == 0
        and weight.data_ptr() % 4 == 0 and weight.storage_offset() % 4 == 0
    )
    w = weight.view(torch.int32) if words else weight
    BLOCK_M = 16 if m <= 16 else 64
    kernel[(triton.cdiv(n, 64), triton.cdiv(m, BLOCK_M))](
        x, w, scale, out, m, n, k, *x.stride(), *w.stride(), scale.stride(0),
        WORDS=words, BLOCK_M=BLOCK_M, BLOCK_N=64, BLOCK_K=32,
    )
    return out
