"""Each of 64 lanes follows its own mean and squares in one pass over the row, with its own count; the lanes are joined by their distances to the mean of all.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, cols, eps, LANES: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    count = tl.zeros((LANES,), dtype=tl.float32)
    mean = tl.zeros((LANES,), dtype=tl.float32)
    squares = tl.zeros((LANES,), dtype=tl.float32)
    for start in range(0, cols, LANES):
        at = start + tl.arange(0, LANES)
        mask = at < cols
        x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(tl.float32)
        d = tl.where(mask, x - mean, 0.0)
        mean += d / tl.maximum(count, 1.0)
        squares += tl.where(mask, d * (x - mean), 0.0)
    # The first lane always has an element: distances to it keep small numbers small.
    pivot = tl.sum(tl.where(tl.arange(0, LANES) == 0, mean, 0.0), axis=0)
    away = tl.where(count > 0, mean - pivot, 0.0)
    offset = tl.sum(away * count, axis=0) / cols
    apart = tl.where(count > 0, away - offset, 0.0)
    variance = tl.sum(squares + count * apart * apart, axis=0) / cols
    rstd = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < cols
        x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + at, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + at, ((x - pivot) - offset) * rstd * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    kernel[(x.numel() // cols,)](
        x, weight, bias, out, cols, eps, LANES=64, BLOCK=min(1024, triton.next_power_of_2(cols)),
    )
    return out
