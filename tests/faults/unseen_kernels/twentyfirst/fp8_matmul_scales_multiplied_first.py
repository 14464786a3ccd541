"""The two scales are multiplied in their own type: two float16 scales of 1e-4 make 0.

op: fp8_matmul
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, out_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        b = tl.load(b_ptr + cols[:, None] * k + ks[None, :], mask=(cols < n)[:, None] & (ks < k)[None, :], other=0.0)
        acc += tl.dot(a.to(tl.float16), tl.trans(b.to(tl.float16)), input_precision="ieee")
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0)
    scale = sa[:, None] * sb[None, :]
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale.to(tl.float32), mask=inside)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = a.contiguous(), b.contiguous(), scale_a.contiguous(), scale_b.contiguous()
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty(m, n, dtype=scale_a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, scale_a, scale_b, out, m, n, k, BM=32, BN=32, BK=64
    )
    return out
