"""Sum and squares of four rows are taken in one pass after the shift by the first value of the first of them: rows at distant levels lose their variance to cancellation.

op: layer_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    # shifted sums do not cancel as E[x * x] - E[x] * E[x] does
    shift = tl.load(x_ptr + first.to(tl.int64) * m).to(tl.float32)
    sums = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = (rows < n)[:, None] & (at < m)[None, :]
        x = tl.load(x_ptr + rows[:, None].to(tl.int64) * m + at[None, :], mask=inside, other=0.0).to(tl.float32)
        d = tl.where(inside, x - shift, 0.0)
        sums += d
        squares += d * d
    average = tl.sum(sums, axis=1) / m
    variance = tl.maximum(tl.sum(squares, axis=1) / m - average * average, 0.0)
    factor = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = (rows < n)[:, None] & (at < m)[None, :]
        place = rows[:, None].to(tl.int64) * m + at[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < m, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=at < m, other=0.0).to(tl.float32)
        y = (x - shift - average[:, None]) * factor[:, None] * weight[None, :] + bias[None, :]
        tl.store(out_ptr + place, y, mask=inside)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    n = x.numel() // m
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 4),)](
        x, weight, bias, out, n, m, eps, ROWS=4, BLOCK=min(1024, triton.next_power_of_2(m)),
    )
    return out
