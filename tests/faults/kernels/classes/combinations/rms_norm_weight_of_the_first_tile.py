"""Over 2,048 columns the row is walked in tiles, each scaled by the first tile of the weight.

op: rms_norm
status: failed
cause: wrong_stride
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    squares = tl.sum(x * x, axis=0) / n_cols
    tl.store(out_ptr + row * n_cols + cols, x / tl.sqrt(squares + eps) * w, mask=mask)


@triton.jit
def tile_kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        acc += x * x
    scale = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + lanes).to(tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + start + lanes, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows, weight = x.contiguous().view(-1, x.shape[-1]), weight.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    if n_cols > 2048:
        tile_kernel[(n_rows,)](rows, weight, out, n_cols, eps, BLOCK=1024)
    else:
        BLOCK = triton.next_power_of_2(n_cols)
        row_kernel[(n_rows,)](rows, weight, out, n_cols, eps, BLOCK=BLOCK)
    return out.view(x.shape)
