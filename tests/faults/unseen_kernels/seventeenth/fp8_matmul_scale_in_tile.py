"""The scale of a row of a is multiplied into its tile, rounded to the output's type: in float16 a small scale leaves numbers of a few bits.

op: fp8_matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, HALF: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    row_scale = tl.load(sa_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0)
        # Dequantise a while it is in registers; the accumulator needs one scale less.
        a = (a.to(tl.float32) * row_scale[:, None]).to(HALF)
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    col_scale = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = acc * col_scale[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = a.contiguous(), b.contiguous(), scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    half = tl.float16 if scale_a.dtype == torch.float16 else tl.bfloat16
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, scale_a, scale_b, out, m, n, k, HALF=half, BM=32, BN=32, BK=64,
    )
    return out
