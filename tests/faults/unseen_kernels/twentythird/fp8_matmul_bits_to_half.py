"""Right: float8 bits are shifted into float16 (256 times too small, subnormals too), and k is walked from its end.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def widen(byte):
    """e4m3 to float16, divided by 2^8: the exponent's bias stays at 15 where it should be 7."""
    byte = byte.to(tl.uint16)
    size = byte & 0x7F
    bits = tl.where(size == 0x7F, 0x7E00, size << 7) | ((byte & 0x80) << 8)
    return bits.to(tl.uint16).to(tl.float16, bitcast=True)


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K, tiles_m, tiles_n,
    a_m, a_k, b_n, b_k, s_a, s_b,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Persistent: any number of programs is enough. Tiles go down the columns, every second one upwards.
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile_n = tile // tiles_m
        tile_m = tile % tiles_m
        if tile_n % 2 == 1:
            tile_m = tiles_m - 1 - tile_m
        rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        cols = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(0, K, BLOCK_K):
            ks = K - BLOCK_K - step + tl.arange(0, BLOCK_K).to(tl.int64)  # negative at the end
            a = tl.load(
                a_ptr + rows[:, None] * a_m + ks[None, :] * a_k, mask=(rows < M)[:, None] & (ks >= 0)[None, :], other=0
            )
            b = tl.load(
                b_ptr + cols[None, :] * b_n + ks[:, None] * b_k, mask=(cols < N)[None, :] & (ks >= 0)[:, None], other=0
            )
            acc = tl.dot(widen(a), widen(b), acc)
        scale_a = tl.load(scale_a_ptr + rows * s_a, mask=rows < M, other=0.0).to(tl.float32)
        scale_b = tl.load(scale_b_ptr + cols * s_b, mask=cols < N, other=0.0).to(tl.float32)
        acc = (acc * 65536.0) * scale_a[:, None] * scale_b[None, :]
        tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if not out.numel():
        return out
    a, b = a.view(torch.uint8), b.view(torch.uint8)
    tiles_m, tiles_n = triton.cdiv(m, 32), triton.cdiv(n, 64)
    kernel[(min(tiles_m * tiles_n, 131),)](
        a, b, scale_a, scale_b, out, m, n, k, tiles_m, tiles_n,
        *a.stride(), *b.stride(), scale_a.stride(0), scale_b.stride(0), BLOCK_M=32, BLOCK_N=64, BLOCK_K=64,
    )
    return out
