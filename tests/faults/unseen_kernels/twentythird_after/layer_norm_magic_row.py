"""The row of an element is found by a multiplication with 2^34 / m, rounded up: past 2^34 / (the rounding) elements, the last columns get the next row.

op: layer_norm
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl

SHIFT = 34


@triton.jit
def statistics(x_ptr, mean_ptr, rstd_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / m
    square = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        d = tl.where(cols < m, x - mean, 0.0)
        square += d * d
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, 1.0 / tl.sqrt(tl.sum(square, axis=0) / m + eps))


@triton.jit
def normalize(
    x_ptr, mean_ptr, rstd_ptr, weight_ptr, bias_ptr, out_ptr, n, m, magic,
    SHIFT: tl.constexpr, BLOCK: tl.constexpr,
):
    """Walks over the elements, not the rows: whole blocks whatever the length of a row."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    row = (i * magic) >> SHIFT  # i // m, without a division of 64 bits
    col = i - row * m
    x = tl.load(x_ptr + i, mask=mask).to(tl.float32)
    mean = tl.load(mean_ptr + row, mask=mask)
    rstd = tl.load(rstd_ptr + row, mask=mask)
    weight = tl.load(weight_ptr + col, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + col, mask=mask).to(tl.float32)
    tl.store(out_ptr + i, (x - mean) * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n, m = x.numel(), x.shape[-1]
    if n:
        mean, rstd = torch.empty(2, n // m, dtype=torch.float32, device=x.device)
        statistics[(n // m,)](x, mean, rstd, m, eps, BLOCK=min(4096, triton.next_power_of_2(m)))
        magic = -(-(2**SHIFT) // m)
        normalize[(triton.cdiv(n, 4096),)](
            x, mean, rstd, weight, bias, out, n, m, magic, SHIFT=SHIFT, BLOCK=4096
        )
    return out
