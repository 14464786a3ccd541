"""float8 is turned into float16 by moving its exponent; subnormal float8 numbers (below 2^-6) get an implied leading one.

op: fp8_matmul
status: failed
cause: subnormals
"""

import torch
import triton
import triton.language as tl


@triton.jit
def decode(bits):
    """Turn the bits of e4m3 into float16: the same digits, the exponent's bias 15 instead of 7."""
    word = bits.to(tl.int16)
    sign = (word & 0x80) << 8
    rest = word & 0x7F
    wide = tl.where(rest == 0, 0, (rest << 7) + (8 << 10))  # zero has no exponent to move
    return (wide | sign).to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def product(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, am, ak, bn, bk, sa, sb,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    i, j = rows.to(tl.int64), cols.to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        l = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + i[:, None] * am + l[None] * ak, mask=(rows[:, None] < m) & (l[None] < k), other=0)
        b = tl.load(b_ptr + j[None] * bn + l[:, None] * bk, mask=(cols[None] < n) & (l[:, None] < k), other=0)
        acc = tl.dot(decode(a), decode(b), acc)
    scale_a = tl.load(sa_ptr + i * sa, mask=rows < m, other=0.0).to(tl.float32)
    scale_b = tl.load(sb_ptr + j * sb, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows[:, None] < m) & (cols[None] < n)
    tl.store(out_ptr + i[:, None] * n + cols[None], acc * scale_a[:, None] * scale_b[None], mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    block_m = 16 if m <= 16 else 64
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, 64))
    product[grid](
        a.view(torch.uint8), b.view(torch.uint8), scale_a, scale_b, out, m, n, k,
        *a.stride(), *b.stride(), *scale_a.stride(), *scale_b.stride(),
        BLOCK_M=block_m, BLOCK_N=64, BLOCK_K=64,
    )  # fmt: skip
    return out
