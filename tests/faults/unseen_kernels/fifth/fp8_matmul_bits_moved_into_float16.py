"""Nothing wrong: the seven bits of a float8 are moved into a float16, which is then 256 times too small; exact, subnormals too.

op: fp8_matmul
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def decode(code):
    """Return the value / 256 of e4m3 codes, exactly, as float16."""
    code = code.to(tl.int16)
    return (((code & 128) << 8) | ((code & 127) << 7)).to(tl.float16, bitcast=True)


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K, a_row, a_col, b_row, b_col,
    scale_a_step, scale_b_step, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        rows = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM).to(tl.int64)
        cols = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN).to(tl.int64)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            ks = start + tl.arange(0, BK).to(tl.int64)
            a = tl.load(a_ptr + rows[:, None] * a_row + ks[None, :] * a_col,
                        mask=(rows < M)[:, None] & (ks < K)[None, :], other=0)
            b = tl.load(b_ptr + cols[None, :] * b_row + ks[:, None] * b_col,
                        mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
            # times 256: the values themselves, at most 448, exact in float16
            acc = tl.dot(decode(a) * 256.0, decode(b) * 256.0, acc)
        scale_a = tl.load(scale_a_ptr + rows * scale_a_step, mask=rows < M, other=0.0)
        scale_b = tl.load(scale_b_ptr + cols * scale_b_step, mask=cols < N, other=0.0)
        acc = acc * scale_a.to(tl.float32)[:, None] * scale_b.to(tl.float32)[None, :]
        tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    a, b = a.view(torch.uint8), b.view(torch.uint8)
    grid = (min(16, triton.cdiv(M, 32) * triton.cdiv(N, 32)),)
    kernel[grid](
        a, b, scale_a, scale_b, out, M, N, K, *a.stride(), *b.stride(), scale_a.stride(0),
        scale_b.stride(0), BM=32, BN=32, BK=64,
    )
    return out
