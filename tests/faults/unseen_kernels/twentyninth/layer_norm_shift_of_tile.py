"""One pass over the values around a shift, but the shift is the first row's: a row of the tile far from it cancels.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_cols, eps,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < n_cols
    mask = (rows < n_rows - first)[:, None] & inside[None, :]
    offsets = first * n_cols + rows[:, None] * n_cols + cols[None, :]
    # Around a value of the data E[d * d] - E[d]^2 does not cancel, however large the mean is: both
    # sums are taken at once, not one after the other.
    shift = tl.load(x_ptr + first * n_cols).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    distance = tl.where(mask, x - shift, 0.0)
    mean = tl.sum(distance, axis=1) / n_cols
    variance = tl.sum(distance * distance, axis=1) / n_cols - mean * mean
    variance = tl.where(variance < 0.0, 0.0, variance)
    rstd = tl.rsqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    out = (distance - mean[:, None]) * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK_SIZE = triton.next_power_of_2(n_cols)
        ROWS = max(1, min(8, 2048 // BLOCK_SIZE))
        rows_kernel[(triton.cdiv(n_rows, ROWS),)](
            x, weight, bias, out, n_rows, n_cols, float(eps),
            ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=4 if BLOCK_SIZE <= 4096 else 16,
        )
    return out
