"""Two buffers for the rows' statistics are used in turn; each call writes all that it reads.

op: layer_norm
status: passed
"""

import itertools

import torch
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, stats_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    tl.store(stats_ptr + 2 * row, mean)
    tl.store(stats_ptr + 2 * row + 1, tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps))


@triton.jit
def scale_kernel(x_ptr, w_ptr, b_ptr, stats_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean, scale = tl.load(stats_ptr + 2 * row), tl.load(stats_ptr + 2 * row + 1)
    tl.store(out_ptr + row * n_cols + cols, (x - mean) * scale * w + b, mask=mask)


CALLS = itertools.count()
WORKSPACES = {}


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    key = (next(CALLS) % 2, n_rows, x.device)
    if key not in WORKSPACES:
        WORKSPACES[key] = torch.empty((n_rows, 2), dtype=torch.float32, device=x.device)
    BLOCK = triton.next_power_of_2(n_cols)
    statistics_kernel[(n_rows,)](x, WORKSPACES[key], n_cols, eps, BLOCK=BLOCK)
    scale_kernel[(n_rows,)](x, weight, bias, WORKSPACES[key], out, n_cols, BLOCK=BLOCK)
    return out
