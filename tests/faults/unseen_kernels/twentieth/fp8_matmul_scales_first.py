"""Float16 scales are multiplied with each other in float16 before the accumulator: the product of two small ones is below the normal range and loses its digits, or all of itself.

op: fp8_matmul
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k, a_m, a_k, b_n, b_k, HALF: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * a_m + at[None, :] * a_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[:, None] * b_n + at[None, :] * b_k, mask=(cols < n)[:, None] & (at < k)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float32), tl.trans(b.to(tl.float32)), input_precision="ieee")
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0)
    if not HALF:
        sa, sb = sa.to(tl.float32), sb.to(tl.float32)
    # One multiplication of the accumulator; of two scales, float16 has digits enough, bfloat16 has not.
    scale = sa[:, None] * sb[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale.to(tl.float32), mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, scale_a, scale_b, out, m, n, k, *a.stride(), *b.stride(),
        HALF=scale_a.dtype == torch.float16, BM=32, BN=32, BK=64,
    )
    return out
