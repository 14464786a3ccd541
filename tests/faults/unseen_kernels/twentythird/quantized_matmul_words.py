"""Right: four weights a load where a row is whole words, made floats by a magic number; else one byte a load.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, words_ptr, scale_ptr, out_ptr, m, n, k, x_m, x_k, w_n, s_n,
    EACH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WORDS: tl.constexpr,
):
    tiles = tl.cdiv(n, BLOCK_N)
    rows = (tl.program_id(0) // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    length = k // EACH
    for start in range(0, length, WORDS):
        at = start + tl.arange(0, WORDS).to(tl.int64)
        words = tl.load(
            words_ptr + cols[None, :] * w_n + at[:, None], mask=(cols < n)[None, :] & (at < length)[:, None], other=0
        ).to(tl.int32)
        for i in tl.static_range(EACH):
            # Lane i of the words meets every EACH-th column of x: k in another order, the same in both.
            x = tl.load(
                x_ptr + rows[:, None] * x_m + (at * EACH + i)[None, :] * x_k,
                mask=(rows < m)[:, None] & (at < length)[None, :], other=0.0,
            )
            # Flipping the sign bit adds 128. 0x6400 is 1024 in float16, whose last bit is worth one.
            byte = ((words >> (8 * i)) & 0xFF) ^ 0x80
            w = (byte | 0x6400).to(tl.int16).to(tl.float16, bitcast=True) - 1152.0
            acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * s_n, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    weight = weight.contiguous()
    each = 4 if k and k % 4 == 0 and weight.data_ptr() % 4 == 0 and weight.storage_offset() % 4 == 0 else 1
    words = weight.reshape(-1).view(torch.int32 if each == 4 else torch.uint8)
    BLOCK_M = min(max(16, triton.next_power_of_2(m)), 64)
    kernel[(triton.cdiv(n, 64) * triton.cdiv(m, BLOCK_M),)](
        x, words, scale, out, m, n, k, *x.stride(), k // each, scale.stride(0),
        EACH=each, BLOCK_M=BLOCK_M, BLOCK_N=64, WORDS=32,
    )
    return out
