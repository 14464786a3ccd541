"""Short rows, eight a program: a row that fills no block is summed with the element after it.

op: rms_norm
status: failed
cause: missing_mask
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel_short(
    x_ptr, w_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = (rows < n_rows)[:, None]
    mask = inside & (cols <= n_cols)[None, :]
    places = rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    mask = inside & (cols < n_cols)[None, :]
    tl.store(out_ptr + places, x * scale[:, None] * w[None, :], mask=mask)


@triton.jit
def kernel_long(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    BLOCK = triton.next_power_of_2(n_cols)
    if n_cols <= 64:
        grid = (triton.cdiv(n_rows, 8),)
        kernel_short[grid](x, weight, out, n_rows, n_cols, eps, ROWS=8, BLOCK=BLOCK)
    else:
        kernel_long[(n_rows,)](x, weight, out, n_cols, eps, BLOCK=BLOCK)
    return out
