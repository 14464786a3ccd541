"""Four rows a program start at the first one's address: in three dimensions with a gap they go across the end of a matrix.

op: layer_norm
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_inner, n_cols, outer, inner, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows - first)[:, None] & (cols < n_cols)[None, :]
    # One division a program, not one a row.
    x_ptr += first // n_inner * outer + first % n_inner * inner
    x = tl.load(x_ptr + rows[:, None] * inner + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / n_cols
    d = tl.where((cols < n_cols)[None, :], x - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=1) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    out = d * scale[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + (first + rows)[:, None] * n_cols + cols[None, :], out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    n_cols = x.shape[-1]
    if x.stride(-1) != 1:
        x = x.contiguous()
    if x.dim() != 3:
        x = x.reshape(1, -1, n_cols)
    if x.stride(-1) != 1:
        x = x.contiguous()
    n_rows = x.shape[0] * x.shape[1]
    BLOCK = triton.next_power_of_2(n_cols)
    ROWS = 4 if BLOCK <= 2048 else 1
    kernel[(triton.cdiv(n_rows, ROWS),)](
        x, weight.contiguous(), bias.contiguous(), out, n_rows, x.shape[1], n_cols, x.stride(0), x.stride(1),
        float(eps), ROWS=ROWS, BLOCK=BLOCK,
    )
    return out
