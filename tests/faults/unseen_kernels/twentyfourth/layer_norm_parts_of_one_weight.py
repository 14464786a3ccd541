"""Rows of more than 16,384 are reduced in eight parts, and their means averaged alike, though the last may be shorter.

op: layer_norm
status: failed
cause: weighting
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, means_ptr, squares_ptr, m, chunk, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    begin = part * chunk
    end = tl.minimum(begin + chunk, m)
    x_ptr += row * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(begin, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < end, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / (end - begin)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(begin, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < end, other=0.0).to(tl.float32)
        distance = tl.where(cols < end, x - mean, 0.0)
        squares += distance * distance
    at = row * tl.num_programs(1) + part
    tl.store(means_ptr + at, mean)
    tl.store(squares_ptr + at, tl.sum(squares, axis=0))


@triton.jit
def apply_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, means_ptr, squares_ptr, m, chunk, eps, weight_step, bias_step,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    parts = row * PARTS + tl.arange(0, PARTS)
    means = tl.load(means_ptr + parts)
    mean = tl.sum(means, axis=0) / PARTS
    apart = means - mean
    # Chan's rule: what lies within the parts, and what lies between them.
    squares = tl.sum(tl.load(squares_ptr + parts) + chunk * apart * apart, axis=0)
    rstd = 1.0 / tl.sqrt(squares / m + eps)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols * weight_step, mask=cols < m, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols * bias_step, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, (x - mean) * rstd * weight + bias, mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    rows = math.prod(x.shape[:-1])
    parts = 8 if m > 16384 else 1
    chunk = triton.cdiv(m, parts)
    means, squares = torch.empty((2, rows, parts), dtype=torch.float32, device=x.device).unbind()
    BLOCK = min(2048, triton.next_power_of_2(m))
    part_kernel[(rows, parts)](x, means, squares, m, chunk, BLOCK=BLOCK)
    apply_kernel[(rows, triton.cdiv(m, BLOCK))](
        x, weight, bias, out, means, squares, m, chunk, eps, weight.stride(0), bias.stride(0), PARTS=parts, BLOCK=BLOCK,
    )
    return out
