"""Four rows a program, all shifted by the first row's first element: another row with a large mean cancels.

op: layer_norm
status: failed
cause: cancellation
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = first + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    shift = tl.load(x_ptr + first * n_cols).to(tl.float32)
    shift = tl.where(tl.abs(shift) < 1e30, shift, 0.0)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    d = tl.where(mask, x - shift, 0.0)
    mean = tl.sum(d, axis=1)[:, None] / n_cols
    variance = tl.maximum(tl.sum(d * d, axis=1)[:, None] / n_cols - mean * mean, 0.0)
    w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    out = (d - mean) / tl.sqrt(variance + eps) * w + b
    tl.store(out_ptr + rows * n_cols + cols, out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    ROWS = 4 if BLOCK <= 8192 else 1
    kernel[(triton.cdiv(n_rows, ROWS),)](
        rows, weight.contiguous(), bias.contiguous(), out, n_rows, n_cols, eps,
        ROWS=ROWS, BLOCK=BLOCK,
    )
    return out.view(x.shape)
