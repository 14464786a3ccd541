"""One row and all of k in a block of at most 4096.

op: quantized_matmul
status: failed
cause: truncated_extent
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, scale_ptr, out_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    ks = tl.arange(0, BK)
    x = tl.load(x_ptr + row * K + ks, mask=ks < K, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols[:, None] * K + ks[None, :],
                mask=(cols < N)[:, None] & (ks < K)[None, :], other=0)
    total = tl.sum(w.to(tl.float32) * x[None, :], axis=1)
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, total * scale, mask=cols < N)


def triton_quantized_matmul(x, weight, scale):
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    BK = min(4096, triton.next_power_of_2(K))
    kernel[(M, triton.cdiv(N, 8))](x, weight, scale, out, N, K, BN=8, BK=BK)
    return out
