"""Rows over 8,192 elements: the last tile is moved back, and the squares of what it shares with the one before count twice.

op: layer_norm
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def one_block_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centred * scale * w + b, mask=mask)


@triton.jit
def tiles_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, n_cols, BLOCK):
        cols = tl.minimum(first, n_cols - BLOCK) + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols).to(tl.float32)
        total += tl.where(cols >= first, x, 0.0)
    mean = tl.sum(total, axis=0) / n_cols
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, n_cols, BLOCK):
        cols = tl.minimum(first, n_cols - BLOCK) + tl.arange(0, BLOCK)
        centred = tl.load(x_ptr + cols).to(tl.float32) - mean
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)
    for first in range(0, n_cols, BLOCK):
        cols = tl.minimum(first, n_cols - BLOCK) + tl.arange(0, BLOCK)
        centred = tl.load(x_ptr + cols).to(tl.float32) - mean
        w = tl.load(w_ptr + cols).to(tl.float32)
        b = tl.load(b_ptr + cols).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, centred * scale * w + b)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= 8192:
        BLOCK = triton.next_power_of_2(n_cols)
        one_block_kernel[(n_rows,)](x, weight, bias, out, n_cols, eps, BLOCK=BLOCK)
    else:
        tiles_kernel[(n_rows,)](x, weight, bias, out, n_cols, eps, BLOCK=2048)
    return out
