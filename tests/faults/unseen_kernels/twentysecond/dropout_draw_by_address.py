"""The draw is numbered by the element's place in memory: an expanded tensor, such as a position table for a batch, gets the same mask for each copy.

op: dropout
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(
    x_ptr, out_ptr, total, n, m, stride_b, stride_n, stride_m, p, scale, seed,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < total)[:, None] & (cols < m)[None, :]
    line = rows // n * stride_b + rows % n * stride_n
    at = line[:, None] + cols[None, :] * stride_m
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(tl.rand(seed, at) >= p, x * scale, 0.0)
    tl.store(out_ptr + rows[:, None] * m + cols[None, :], y, mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.dim() < 3:
        x = x[(None,) * (3 - x.dim())]
    elif x.dim() > 3:
        x = x.reshape(-1, *x.shape[-2:])
    b, n, m = x.shape
    kernel[(triton.cdiv(b * n, 8), triton.cdiv(m, 256))](
        x, out, b * n, n, m, *x.stride(), p, 1.0 / (1.0 - p), seed, ROWS=8, BLOCK=256
    )
    return out
