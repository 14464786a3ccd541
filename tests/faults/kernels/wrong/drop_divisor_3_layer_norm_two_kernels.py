"""A quotient without its divisor.

op: layer_norm
status: wrong_values
from: layer_norm_two_kernels
operator: drop_divisor
seed: 3
was: tl.sum(centred * centred, axis=0) / n_cols
now: tl.sum(centred * centred, axis=0)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, stats_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0)
    tl.store(stats_ptr + 2 * row, mean)
    tl.store(stats_ptr + 2 * row + 1, 1.0 / tl.sqrt(var + eps))


@triton.jit
def apply_kernel(x_ptr, stats_ptr, w_ptr, b_ptr, out_ptr, n, n_cols, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row, col = offsets // n_cols, offsets % n_cols
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    mean = tl.load(stats_ptr + 2 * row, mask=mask)
    scale = tl.load(stats_ptr + 2 * row + 1, mask=mask)
    w = tl.load(w_ptr + col, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + col, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x - mean) * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n, n_cols = x.numel(), x.shape[-1]
    stats = torch.empty((n // n_cols, 2), dtype=torch.float32, device=x.device)
    BLOCK = triton.next_power_of_2(n_cols)
    stats_kernel[(n // n_cols,)](x, stats, n_cols, eps, BLOCK=BLOCK)
    apply_kernel[(triton.cdiv(n, 1024),)](x, stats, weight, bias, out, n, n_cols, BLOCK=1024)
    return out
