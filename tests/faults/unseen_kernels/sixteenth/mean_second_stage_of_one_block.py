"""The partial sums of a long row are added in one block of at most 1024: a row of more than 524288 elements loses its end.

op: mean
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def whole(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row.to(tl.int64) * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


@triton.jit
def parts(x_ptr, part_ptr, m, count, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    at = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * count + part, tl.sum(x, axis=0))


@triton.jit
def join(part_ptr, out_ptr, m, count, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(part_ptr + row * count + at, mask=at < count, other=0.0), axis=0)
    tl.store(out_ptr + row, total / m)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if m <= 16384 or rows >= 256:
        whole[(rows,)](x, out, m, BLOCK=1024)
        return out
    count = triton.cdiv(m, 512)
    partial = torch.empty((rows, count), dtype=torch.float32, device=x.device)
    parts[(rows, count)](x, partial, m, count, BLOCK=512)
    join[(rows,)](partial, out, m, count, BLOCK=min(1024, triton.next_power_of_2(count)))
    return out
