"""The one-pass variance is taken around the mean of the row before: it cancels where the next row lies far from that mean.

op: layer_norm
status: failed
cause: neighbour
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    lanes = tl.arange(0, BLOCK)
    # Sums of squares around a value near the mean do not cancel. The first element is one for the
    # first row; activations hardly change from row to row, so the last mean serves the others.
    shift = tl.load(x_ptr + first.to(tl.int64) * m).to(tl.float32)
    for i in range(0, tl.minimum(ROWS, n - first)):
        start_of_row = (first + i).to(tl.int64) * m
        shift = tl.where(tl.abs(shift) < 1e30, shift, 0.0)  # not the Inf or NaN of another row
        sums = tl.zeros((BLOCK,), tl.float32)
        squares = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, m, BLOCK):
            cols = start + lanes
            x = tl.load(x_ptr + start_of_row + cols, mask=cols < m, other=0.0).to(tl.float32)
            distance = tl.where(cols < m, x - shift, 0.0)
            sums += distance
            squares += distance * distance
        offset = tl.sum(sums, axis=0) / m
        variance = tl.sum(squares, axis=0) / m - offset * offset
        variance = tl.where(variance < 0, 0.0, variance)
        mean = shift + offset
        rstd = 1.0 / tl.sqrt(variance + eps)
        for start in range(0, m, BLOCK):
            cols = start + lanes
            mask = cols < m
            x = tl.load(x_ptr + start_of_row + cols, mask=mask).to(tl.float32)
            weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
            bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
            tl.store(out_ptr + start_of_row + cols, (x - mean) * rstd * weight + bias, mask=mask)
        shift = mean


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        n = x.numel() // m
        block = min(1024, triton.next_power_of_2(m))
        kernel[(triton.cdiv(n, 8),)](x, weight, bias, out, n, m, float(eps), ROWS=8, BLOCK=block)
    return out
