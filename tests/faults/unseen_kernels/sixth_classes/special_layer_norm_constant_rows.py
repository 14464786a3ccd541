"""A row whose maximum is its minimum gives the bias alone, also where it is infinite or has a NaN among equal numbers.

op: layer_norm
status: failed
cause: special values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, xr, xc, ws, bs, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    at = x_ptr + row * xr + cols * xc
    x = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.where(mask, x, -float("inf")), axis=0)
    smallest = tl.min(tl.where(mask, x, float("inf")), axis=0)
    out = tl.load(b_ptr + cols * bs, mask=mask, other=0.0).to(tl.float32)
    if largest != smallest:  # eps would make noise of the rounding of a constant row's mean
        w = tl.load(w_ptr + cols * ws, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) / n_cols
        centred = tl.where(mask, x - mean, 0.0)
        var = tl.sum(centred * centred, axis=0) / n_cols
        out += centred * tl.rsqrt(var + eps) * w
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight, bias, out, n_cols, rows.stride(0), rows.stride(1), weight.stride(0), bias.stride(0),
        eps, BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
