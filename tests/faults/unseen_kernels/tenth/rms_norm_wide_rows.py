"""Rows past 8192 columns are scaled in a float32 buffer, which for float32 is the input itself.

op: rms_norm
status: failed
cause: memory
"""

import torch
import triton
import triton.language as tl

WIDE = 8192


@triton.jit
def row_kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


@triton.jit
def scale_kernel(rows_ptr, n_cols, eps, BLOCK: tl.constexpr):
    base = rows_ptr + tl.program_id(0).to(tl.int64) * n_cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(base + cols, mask=cols < n_cols, other=0.0)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(base + cols, mask=cols < n_cols, other=0.0)
        tl.store(base + cols, x * scale, mask=cols < n_cols)


@triton.jit
def weight_kernel(rows_ptr, w_ptr, out_ptr, n, n_cols, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(rows_ptr + offsets, mask=mask)
    w = tl.load(w_ptr + offsets % n_cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    n_cols = x.shape[-1]
    rows, weight = x.contiguous().view(-1, n_cols), weight.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_cols <= WIDE:
        BLOCK = triton.next_power_of_2(n_cols)
        row_kernel[(rows.shape[0],)](rows, weight, out, n_cols, eps, BLOCK=BLOCK)
        return out
    scaled = rows.to(torch.float32)
    scale_kernel[(rows.shape[0],)](scaled, n_cols, eps, BLOCK=2048)
    weight_kernel[(triton.cdiv(x.numel(), 2048),)](scaled, weight, out, x.numel(), n_cols, BLOCK=2048)
    return out
