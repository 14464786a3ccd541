"""Right: four weights are read as one word, whose bytes become floats by the bits of 2**23, and meet every fourth column of x; where k is no multiple of four, single bytes are read.

op: quantized_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def to_float(byte):
    """An int8 in the low byte of an int32, as float32: 2**23 + 128 + byte, less 2**23 + 128."""
    bits = ((byte & 0xFF) ^ 0x80) | 0x4B000000
    return bits.to(tl.float32, bitcast=True) - 8388736.0


@triton.jit
def product_kernel(
    x_ptr, word_ptr, scale_ptr, out_ptr, m, n, words, x_m, x_k, w_n, w_k, s_n,
    LANES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_W: tl.constexpr,
):
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, words, BLOCK_W):
        ws = start + tl.arange(0, BLOCK_W).to(tl.int64)
        word = tl.load(
            word_ptr + cols[None, :] * w_n + ws[:, None] * w_k,
            mask=(cols < n)[None, :] & (ws < words)[:, None], other=0,
        ).to(tl.int32)
        for lane in tl.static_range(LANES):
            x = tl.load(
                x_ptr + rows[:, None] * x_m + (ws * LANES + lane)[None, :] * x_k,
                mask=(rows < m)[:, None] & (ws < words)[None, :], other=0.0,
            )
            acc = tl.dot(x, to_float(word >> (8 * lane)).to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * s_n, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    lanes = 1
    whole = weight.stride(1) == 1 and weight.stride(0) % 4 == 0 and weight.storage_offset() % 4 == 0
    if k and k % 4 == 0 and whole and weight.data_ptr() % 4 == 0:
        weight, lanes = weight.view(torch.int32), 4
    product_kernel[(triton.cdiv(n, 32) * triton.cdiv(m, 32),)](
        x, weight, scale, out, m, n, k // lanes, *x.stride(), *weight.stride(), scale.stride(0),
        LANES=lanes, BLOCK_M=32, BLOCK_N=32, BLOCK_W=32,
    )
    return out
