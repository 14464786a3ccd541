"""One pass with sums of shifted values, but a tile's rows share the first one's shift; cancels where rows lie at different levels.

op: layer_norm
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = (first + tl.arange(0, ROWS))[:, None]
    shift = tl.load(x_ptr + first * n_cols).to(tl.float32)
    sums = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = (start + tl.arange(0, BLOCK))[None, :]
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        d = tl.where(mask, x - shift, 0.0)
        sums += d
        squares += d * d
    distance = tl.sum(sums, axis=1) / n_cols
    var = tl.maximum(tl.sum(squares, axis=1) / n_cols - distance * distance, 0.0)
    mean, rstd = (shift + distance)[:, None], (1.0 / tl.sqrt(var + eps))[:, None]
    for start in range(0, n_cols, BLOCK):
        cols = (start + tl.arange(0, BLOCK))[None, :]
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + rows * n_cols + cols, (x - mean) * rstd * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    kernel[(triton.cdiv(n_rows, 4),)](x, weight, bias, out, n_rows, n_cols, eps, ROWS=4, BLOCK=256)
    return out
