"""Right: rows in 7 parts dealt out by blocks, some parts empty; means and squares are joined with their counts, the grid is reversed.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, stats_ptr, m, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    part = PARTS - 1 - tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    base = x_ptr + row.to(tl.int64) * m
    count = 0
    mean = tl.sum(tl.zeros((BLOCK,), tl.float32), axis=0)
    squares = mean
    # Block b belongs to part b % PARTS: short rows leave the last parts without any.
    for start in range(part * BLOCK, m, PARTS * BLOCK):
        mask = start + lanes < m
        x = tl.load(base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        n = tl.minimum(BLOCK, m - start)
        own_mean = tl.sum(x, axis=0) / n
        away = tl.where(mask, x - own_mean, 0.0)
        delta = own_mean - mean
        mean += delta * (n * 1.0 / (count + n))
        squares += tl.sum(away * away, axis=0) + delta * delta * (count * 1.0 * n / (count + n))
        count += n
    where = stats_ptr + (row.to(tl.int64) * PARTS + part) * 3
    tl.store(where, count * 1.0)
    tl.store(where + 1, mean)
    tl.store(where + 2, squares)


@triton.jit
def write_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, stats_ptr, m, eps, PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    parts = tl.arange(0, 8)
    where = stats_ptr + (row * PARTS + parts) * 3
    count = tl.load(where, mask=parts < PARTS, other=0.0)
    means = tl.load(where + 1, mask=parts < PARTS, other=0.0)
    squares = tl.load(where + 2, mask=parts < PARTS, other=0.0)
    # Around the mean of the first part, which is never empty: no cancellation by a large mean.
    first = tl.load(stats_ptr + row * PARTS * 3 + 1)
    mean = first + tl.sum(tl.where(count > 0, means - first, 0.0) * count, axis=0) / m
    away = tl.where(count > 0, means - mean, 0.0)
    variance = (tl.sum(squares, axis=0) + tl.sum(count * away * away, axis=0)) / m
    scale = 1.0 / tl.sqrt(variance + eps)
    mask = cols < m
    x = tl.load(x_ptr + row * m + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, (x - mean) * scale * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    stats = torch.empty((rows, 7, 3), dtype=torch.float32, device=x.device)
    block = max(16, min(512, triton.next_power_of_2(m) // 4))
    part_kernel[(rows, 7)](x, stats, m, PARTS=7, BLOCK=block)
    grid = rows, triton.cdiv(m, block)
    write_kernel[grid](x, weight, bias, out, stats, m, eps, PARTS=7, BLOCK=block)
    return out
