"""A long row is split in sixteen; the count of a part past the row's end is negative, and enters the variance with the mean's square.

op: layer_norm
status: failed
cause: count
"""

import torch
import triton
import triton.language as tl

SPLITS = 16


@triton.jit
def row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < m
    x = tl.load(x_ptr + row * m + cols, mask=mask, other=0.0).to(tl.float32)
    distance = tl.where(mask, x - tl.sum(x, axis=0) / m, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(distance * distance, axis=0) / m + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, distance * rstd * weight + bias, mask=mask)


@triton.jit
def part_kernel(x_ptr, parts_ptr, m, length, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """Count, mean and squared distances of a part of a row."""
    row, split = tl.program_id(0).to(tl.int64), tl.program_id(1)
    start = split * length
    count = tl.minimum(length, m - start)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(start, start + count, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / tl.maximum(count, 1)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(start, start + count, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        distance = tl.where(cols < m, x - mean, 0.0)
        squares += distance * distance
    place = parts_ptr + row * 3 * SPLITS + split
    tl.store(place, count.to(tl.float32))
    tl.store(place + SPLITS, mean)
    tl.store(place + 2 * SPLITS, tl.sum(squares, axis=0))


@triton.jit
def apply_kernel(
    x_ptr, parts_ptr, weight_ptr, bias_ptr, out_ptr, m, length, eps, SPLITS: tl.constexpr, BLOCK: tl.constexpr
):
    row, start = tl.program_id(0).to(tl.int64), tl.program_id(1) * length
    places = parts_ptr + row * 3 * SPLITS + tl.arange(0, SPLITS)
    count, means, squares = tl.load(places), tl.load(places + SPLITS), tl.load(places + 2 * SPLITS)
    mean = tl.sum(count * means, axis=0) / m
    shift = means - mean
    rstd = 1.0 / tl.sqrt(tl.sum(squares + count * shift * shift, axis=0) / m + eps)
    for first in range(start, tl.minimum(start + length, m), BLOCK):
        cols = first + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + row * m + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + cols, (x - mean) * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    n = x.numel() // m
    if m <= 16384:
        row_kernel[(n,)](x, weight, bias, out, m, eps, BLOCK=triton.next_power_of_2(m), num_warps=8)
        return out
    length = triton.cdiv(triton.cdiv(m, SPLITS), 256) * 256  # parts start at whole lines of the cache
    parts = torch.empty((n, 3, SPLITS), dtype=torch.float32, device=x.device)
    part_kernel[(n, SPLITS)](x, parts, m, length, SPLITS=SPLITS, BLOCK=256)
    apply_kernel[(n, SPLITS)](x, parts, weight, bias, out, m, length, eps, SPLITS=SPLITS, BLOCK=256)
    return out
