"""Rows over 1024 elements: mean and deviation are folded to a scale and a shift, stored in the type of x; in half types the shift is too coarse where the mean is large.

op: layer_norm
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def whole_kernel(x_ptr, w_ptr, b_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
    d = tl.where(mask, x - tl.sum(x, axis=0) / cols, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / cols + eps)
    w = tl.load(w_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * cols + at, d * rstd * w + b, mask=mask)


@triton.jit
def stats_kernel(x_ptr, stats_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / cols
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        d = tl.where(at < cols, x - mean, 0.0)
        squares += d * d
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    tl.store(stats_ptr + row * 2, rstd)
    tl.store(stats_ptr + row * 2 + 1, -mean * rstd)


@triton.jit
def apply_kernel(x_ptr, stats_ptr, w_ptr, b_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < cols
    scale = tl.load(stats_ptr + row * 2).to(tl.float32)
    shift = tl.load(stats_ptr + row * 2 + 1).to(tl.float32)
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * cols + at, (x * scale + shift) * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    rows = x.numel() // cols
    if cols <= 1024:
        whole_kernel[(rows,)](x, weight, bias, out, cols, eps, BLOCK=triton.next_power_of_2(cols))
    else:
        stats = torch.empty((rows, 2), dtype=x.dtype, device=x.device)
        stats_kernel[(rows,)](x, stats, cols, eps, BLOCK=1024)
        apply_kernel[(rows, triton.cdiv(cols, 1024))](x, stats, weight, bias, out, cols, BLOCK=1024)
    return out
