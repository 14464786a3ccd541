"""Mean and variance in one pass, shifted by the row's mean, which a pass before found; the formula that cancels is then exact to rounding.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    out_ptr += row * n_cols
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    base = tl.load(x_ptr).to(tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        acc += tl.where(cols < n_cols, x - base, 0.0)
    shift = base + tl.sum(acc, axis=0) / n_cols
    one = tl.zeros((BLOCK,), dtype=tl.float32)
    two = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        d = tl.where(cols < n_cols, x - shift, 0.0)
        one += d
        two += d * d
    rest = tl.sum(one, axis=0) / n_cols  # what rounding left of the mean
    var = tl.maximum(tl.sum(two, axis=0) / n_cols - rest * rest, 0.0)
    var = tl.where(shift == shift, var, shift)  # a maximum may drop NaN
    rstd = 1.0 / tl.sqrt(var + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + cols, (x - shift - rest) * rstd * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    block = min(1024, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, weight, bias, out, n_cols, eps, BLOCK=block)
    return out
