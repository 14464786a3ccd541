"""The shift of the one-pass variance is the mean of the row before it; where rows have very different means, the variance cancels.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 264  # two a multiprocessor


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_cols, eps, rows_each, BLOCK: tl.constexpr
):
    first = tl.program_id(0) * rows_each
    # Squares of distances to any value near the mean don't cancel: a value of the row will do.
    shift = tl.load(x_ptr + first.to(tl.int64) * n_cols).to(tl.float32)
    for i in range(0, tl.minimum(rows_each, n_rows - first)):
        at = (first + i).to(tl.int64) * n_cols
        sums = tl.zeros((BLOCK,), tl.float32)
        squares = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            mask = cols < n_cols
            x = tl.load(x_ptr + at + cols, mask=mask, other=0.0).to(tl.float32)
            d = tl.where(mask, x - shift, 0.0)
            sums += d
            squares += d * d
        delta = tl.sum(sums, axis=0) / n_cols
        variance = tl.sum(squares, axis=0) / n_cols - delta * delta
        scale = 1.0 / tl.sqrt(tl.where(variance < 0.0, 0.0, variance) + eps)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            mask = cols < n_cols
            x = tl.load(x_ptr + at + cols, mask=mask, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
            bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
            y = ((x - shift) - delta) * scale * weight + bias
            tl.store(out_ptr + at + cols, y, mask=mask)
        # The next row's mean is about this one's, and it is at hand before that row is.
        mean = shift + delta
        shift = tl.where(tl.abs(mean) < float("inf"), mean, 0.0)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        rows_each = triton.cdiv(n_rows, PROGRAMS)
        block = min(triton.next_power_of_2(n_cols), 2048)
        layer_norm_kernel[(triton.cdiv(n_rows, rows_each),)](
            x, weight, bias, out, n_rows, n_cols, eps, rows_each, BLOCK=block
        )
    return out
