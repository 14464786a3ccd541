"""Right: bytes of float8 are shifted into float16 with a wrong exponent, repaired at the end; the last tiles overlap others instead of masking.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def as_half(byte):
    """The float8 value over 256: sign to the sign, exponent and mantissa below; exact, subnormals too."""
    bits = byte.to(tl.uint16)
    return (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True)


@triton.jit
def product_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k, a_m, a_k, b_n, b_k, sa, sb,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # The last tile is moved back to end with the matrix: its first rows are another tile's, too.
    top = tl.maximum(tl.minimum(tl.program_id(0) * BLOCK_M, m - BLOCK_M), 0)
    left = tl.maximum(tl.minimum(tl.program_id(1) * BLOCK_N, n - BLOCK_N), 0)
    rows = (top + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = (left + tl.arange(0, BLOCK_N)).to(tl.int64)
    wrapped_rows, wrapped_cols = rows % m, cols % n  # only matrices smaller than a tile wrap
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    start = tl.cdiv(k, BLOCK_K) * BLOCK_K - BLOCK_K
    while start >= 0:  # from the end, so the block that needs a mask comes first
        ks = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(
            a_ptr + wrapped_rows[:, None] * a_m + ks[None, :] * a_k, mask=(ks < k)[None, :], other=0
        )
        b = tl.load(
            b_ptr + wrapped_cols[None, :] * b_n + ks[:, None] * b_k, mask=(ks < k)[:, None], other=0
        )
        acc = tl.dot(as_half(a), as_half(b), acc)
        start -= BLOCK_K
    scale_a = tl.load(scale_a_ptr + wrapped_rows * sa).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + wrapped_cols * sb).to(tl.float32)
    acc = acc * 65536.0 * scale_a[:, None] * scale_b[None, :]
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel():
        product_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
            a.view(torch.uint8), b.view(torch.uint8), scale_a, scale_b, out, m, n, k,
            *a.stride(), *b.stride(), *scale_a.stride(), *scale_b.stride(),
            BLOCK_M=32, BLOCK_N=32, BLOCK_K=64,
        )
    return out
