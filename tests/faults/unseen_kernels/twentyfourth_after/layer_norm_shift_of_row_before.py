"""A program subtracts the mean of its previous row before it squares: where that is far from this row's mean the variance cancels.

op: layer_norm
status: failed
cause: carries
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n, m, per, stride_w, stride_b, eps,
    BLOCK: tl.constexpr,
):
    first = tl.program_id(0) * per
    last = tl.minimum(first + per, n)
    shift = tl.load(x_ptr + first.to(tl.int64) * m).to(tl.float32)
    for row in range(first, last):
        offset = tl.cast(row, tl.int64) * m
        # One pass: sums of the distances to a number near the mean, and of their squares.
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        squares = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, m, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + offset + cols, mask=cols < m, other=0.0).to(tl.float32)
            d = tl.where(cols < m, x - shift, 0.0)
            total += d
            squares += d * d
        rest = tl.sum(total, axis=0) / m
        mean = shift + rest
        var = tl.sum(squares, axis=0) / m - rest * rest
        factor = 1.0 / tl.sqrt(tl.where(var < 0.0, 0.0, var) + eps)
        for start in range(0, m, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            mask = cols < m
            x = tl.load(x_ptr + offset + cols, mask=mask, other=0.0).to(tl.float32)
            w = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
            b = tl.load(bias_ptr + cols * stride_b, mask=mask, other=0.0).to(tl.float32)
            tl.store(out_ptr + offset + cols, (x - mean) * factor * w + b, mask=mask)
        shift = tl.where(tl.abs(mean) < float("inf"), mean, 0.0)  # the next row's is near it


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    n = x.numel() // m
    per = triton.cdiv(n, 64)
    kernel[(triton.cdiv(n, per),)](
        x, weight, bias, out, n, m, per, weight.stride(0), bias.stride(0), eps,
        BLOCK=min(1024, triton.next_power_of_2(m)),
    )  # fmt: skip
    return out
