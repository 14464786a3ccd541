"""A variance that is not above zero is taken for zero, a NaN too: the finite elements beside an infinity become infinite, not NaN.

op: layer_norm
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl

@triton.jit
def tile_sums(x_ptr, cols, n_cols, shift):
    x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    d = tl.where(cols < n_cols, x - shift, 0.0)
    return d, d * d


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    out_ptr += row * n_cols
    # the middle of three elements is no outlier
    one = tl.load(x_ptr).to(tl.float32)
    two = tl.load(x_ptr + n_cols // 2).to(tl.float32)
    three = tl.load(x_ptr + n_cols - 1).to(tl.float32)
    shift = tl.maximum(tl.minimum(one, two), tl.minimum(tl.maximum(one, two), three))
    s1 = tl.zeros((BLOCK,), dtype=tl.float32)
    s2 = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        d, dd = tile_sums(x_ptr, start + tl.arange(0, BLOCK), n_cols, shift)
        s1 += d
        s2 += dd
    off = tl.sum(s1, axis=0) / n_cols
    var = tl.sum(s2, axis=0) / n_cols - off * off
    var = tl.where(var > 0.0, var, 0.0)  # rounding may leave it below zero
    inverse = 1.0 / tl.sqrt(var + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        x = tl.load(x_ptr + cols, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - shift - off) * inverse * w + b, mask=inside)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    block = min(2048, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, weight, bias, out, n_cols, eps, BLOCK=block)
    return out
