"""The loop takes four tiles at a time, another one those left over.

op: rms_norm
status: passed
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
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


@triton.jit
def square(x_ptr, tile, n_cols, BLOCK: tl.constexpr):
    cols = tile * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    return x * x


@triton.jit
def tiles_kernel(x_ptr, w_ptr, out_ptr, n_cols, n_tiles, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    acc0 = tl.zeros((BLOCK,), dtype=tl.float32)
    acc1 = tl.zeros((BLOCK,), dtype=tl.float32)
    acc2 = tl.zeros((BLOCK,), dtype=tl.float32)
    acc3 = tl.zeros((BLOCK,), dtype=tl.float32)
    whole = n_tiles // 4 * 4
    for tile in range(0, whole, 4):
        acc0 += square(x_ptr, tile, n_cols, BLOCK)
        acc1 += square(x_ptr, tile + 1, n_cols, BLOCK)
        acc2 += square(x_ptr, tile + 2, n_cols, BLOCK)
        acc3 += square(x_ptr, tile + 3, n_cols, BLOCK)
    for tile in range(whole, n_tiles):
        acc0 += square(x_ptr, tile, n_cols, BLOCK)
    total = tl.sum(acc0 + acc1 + acc2 + acc3, axis=0)
    scale = 1.0 / tl.sqrt(total / n_cols + eps)
    for tile in range(n_tiles):
        cols = tile * BLOCK + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= 4096:
        row_kernel[(n_rows,)](x, weight, out, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols))
    else:
        n_tiles = triton.cdiv(n_cols, 1024)
        tiles_kernel[(n_rows,)](x, weight, out, n_cols, n_tiles, eps, BLOCK=1024)
    return out
