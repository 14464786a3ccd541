"""Sums of one pass are taken about the mean of the program's row before: they cancel where the next row lies elsewhere.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, m, stride, eps, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    shift = tl.load(x_ptr + first * stride).to(tl.float32)
    for row in range(first, n_rows, tl.num_programs(0)):
        x_row = x_ptr + row * stride
        sums = tl.zeros((BLOCK,), tl.float32)
        squares = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, m, BLOCK):
            cols = start + lanes
            x = tl.load(x_row + cols, mask=cols < m, other=0.0).to(tl.float32)
            # About a value near the mean, so that the squares do not cancel.
            d = tl.where(cols < m, x - shift, 0.0)
            sums += d
            squares += d * d
        off = tl.sum(sums, axis=0) / m
        mean = shift + off
        var = tl.sum(squares, axis=0) / m - off * off
        var = tl.where(var < 0.0, 0.0, var)  # NaN stays
        rstd = 1.0 / tl.sqrt(var + eps)
        for start in range(0, m, BLOCK):
            cols = start + lanes
            mask = cols < m
            x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
            bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
            y = (x - mean) * rstd * weight + bias
            tl.store(out_ptr + row * m + cols, y, mask=mask)
        # Known before the next row arrives; a NaN or infinity must not stay.
        shift = tl.where(tl.abs(mean) < 1e38, mean, 0.0)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    m = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    rows = x.reshape(-1, m)
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    n_rows = rows.shape[0]
    kernel[(min(n_rows, 264),)](
        rows, weight.contiguous(), bias.contiguous(), out, n_rows, m, rows.stride(0), float(eps),
        BLOCK=min(2048, triton.next_power_of_2(m)),
    )
    return out
