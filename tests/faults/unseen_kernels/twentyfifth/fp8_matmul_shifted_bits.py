"""Right: float8 is decoded by shifting its bits into a float16, 256 times too small; the epilogue multiplies by 65,536.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decode(bits):
    """x / 256 of e4m3, exactly: the sign to the top, exponent and mantissa behind a zero.

    A subnormal number of e4m3 becomes a subnormal float16. The bits of NaN would become 1.875.
    """
    wide = bits.to(tl.uint16)
    half = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)
    half = tl.where((wide & 0x7F) == 0x7F, 0x7E00, half).to(tl.uint16)
    return half.to(tl.float16, bitcast=True)


@triton.jit
def fp8_matmul_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k,
    a_row, a_col, b_row, b_col, sa_step, sb_step,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_at = a_ptr + rows.to(tl.int64)[:, None] * a_row
    b_at = b_ptr + cols.to(tl.int64)[None, :] * b_row
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        in_a = (rows < m)[:, None] & (ks < k)[None, :]
        in_b = (cols < n)[None, :] & (ks < k)[:, None]
        a = tl.load(a_at + ks[None, :] * a_col, mask=in_a, other=0)
        b = tl.load(b_at + ks[:, None] * b_col, mask=in_b, other=0)
        acc = tl.dot(decode(a), decode(b), acc)
    scale_a = tl.load(scale_a_ptr + rows * sa_step, mask=rows < m, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + cols * sb_step, mask=cols < n, other=0.0).to(tl.float32)
    out = acc * 65536.0 * scale_a[:, None] * scale_b[None, :]
    at = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(at, out, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    a, b = a.view(torch.uint8), b.view(torch.uint8)
    block_m = 16 if m <= 16 else 64
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, 64),)
    fp8_matmul_kernel[grid](
        a, b, scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(),
        scale_a.stride(0), scale_b.stride(0), BLOCK_M=block_m, BLOCK_N=64, BLOCK_K=64,
    )
    return out
