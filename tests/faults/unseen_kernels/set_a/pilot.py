"""The squares are taken about one pilot for all rows of a tile, the first row's first element, which is far from a row of another level.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm(
    x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = first + tl.arange(0, ROWS)[:, None]
    pilot = tl.load(x_ptr + first * n_cols).to(tl.float32)
    shifted = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, n_cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        m = (row < n_rows) & (col < n_cols)
        x = tl.load(x_ptr + row * n_cols + col, mask=m, other=0.0).to(tl.float32)
        d = tl.where(m, x - pilot, 0.0)
        shifted += d
        squares += d * d
    # One pass; the shift keeps E[d*d] - E[d]**2 from cancelling.
    mean = tl.sum(shifted, axis=1) / n_cols
    var = tl.sum(squares, axis=1) / n_cols - mean * mean
    scale = tl.rsqrt(tl.where(var < 0.0, 0.0, var) + eps)
    for start in range(0, n_cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        m = (row < n_rows) & (col < n_cols)
        w = tl.load(w_ptr + col, mask=col < n_cols, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + col, mask=col < n_cols, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * n_cols + col, mask=m, other=0.0).to(tl.float32)
        out = ((x - pilot) - mean[:, None]) * scale[:, None] * w + b
        tl.store(out_ptr + row * n_cols + col, out, mask=m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    block = min(512, triton.next_power_of_2(n_cols))
    _layer_norm[(triton.cdiv(n_rows, 4),)](
        rows, weight.contiguous(), bias.contiguous(), out, n_rows, n_cols, eps, ROWS=4, BLOCK=block
    )
    return out.view(x.shape)
