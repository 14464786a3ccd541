"""eps is left out of a tile of rows whose largest mean square dwarfs it; a row of zeros in that tile is 0 * inf, a small one too large.

op: rms_norm
status: failed
cause: eps
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        inside = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        squares += x * x
    mean = tl.sum(squares, axis=1) / n_cols
    if tl.max(mean, axis=0) < 1e5 * eps:
        inverse = 1.0 / tl.sqrt(mean + eps)
    else:  # eps is below the last bit that counts
        inverse = 1.0 / tl.sqrt(mean)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        inside = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + rows * n_cols + cols, x * inverse[:, None] * w, mask=inside)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    block = min(512, triton.next_power_of_2(n_cols))
    rows = max(4, 1024 // block)
    kernel[(triton.cdiv(n_rows, rows),)](x, weight, out, n_rows, n_cols, eps, ROWS=rows, BLOCK=block)
    return out
