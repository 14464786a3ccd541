"""Where k is odd, the rows of the weight are taken to be k apart.

op: quantized_matmul
status: failed
cause: wrong_stride
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr,
    w_ptr,
    s_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    x_col,
    w_row,
    s_step,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * x_row + ks[None, :] * x_col,
            mask=(rows < m)[:, None] & (ks < k)[None, :],
            other=0.0,
        )
        w = tl.load(
            w_ptr + cols[None, :] * w_row + ks[:, None],
            mask=(cols < n)[None, :] & (ks < k)[:, None],
            other=0,
        )
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(s_ptr + cols * s_step, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        acc * scale[None, :],
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    if weight.stride(1) != 1:
        weight = weight.contiguous()
    w_row = weight.stride(0) if k % 2 == 0 else k
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](
        x,
        weight,
        scale,
        out,
        m,
        n,
        k,
        x.stride(0),
        x.stride(1),
        w_row,
        scale.stride(0),
        BM=16,
        BN=64,
        BK=64,
    )
    return out
