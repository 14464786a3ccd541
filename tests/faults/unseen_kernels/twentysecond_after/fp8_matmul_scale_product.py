"""The product of the two scales is rounded to their dtype before it reaches the float32 accumulator: in float16 scales of about 1e-4 have a product of 0.

op: fp8_matmul
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[None, :] * k + ks[:, None], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0.0)
        # float8 e4m3 fits into float16 exactly
        acc += tl.dot(a.to(tl.float16), b.to(tl.float16))
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    # one scale an element, of the dtype of the scales as if torch had multiplied them
    scale = (scale_a[:, None] * scale_b[None, :]).to(out_ptr.dtype.element_ty)
    at = rows[:, None] * n + cols[None, :]
    tl.store(out_ptr + at, acc * scale.to(tl.float32), mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous(), b.contiguous()
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        a, b, scale_a, scale_b, out, m, n, k, BM=64, BN=64, BK=64
    )
    return out
