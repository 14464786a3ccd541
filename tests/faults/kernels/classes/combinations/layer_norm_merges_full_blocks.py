"""Means and squares of blocks are merged as if the last block were full.

op: layer_norm
status: failed
cause: wrong_formula
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean, squares, count = 0.0, 0.0, 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / tl.minimum(BLOCK, n_cols - start)
        distance = tl.where(mask, x - block_mean, 0.0)
        step = block_mean - mean
        mean += step * BLOCK / (count + BLOCK)
        squares += tl.sum(distance * distance, axis=0)
        squares += step * step * count * BLOCK / (count + BLOCK)
        count += BLOCK
    scale = 1.0 / tl.sqrt(squares / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, (x - mean) * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = min(512, triton.next_power_of_2(n_cols))
    kernel[(n_rows,)](
        rows, weight.contiguous(), bias.contiguous(), out, n_cols, eps, BLOCK=BLOCK
    )
    return out.view(x.shape)
