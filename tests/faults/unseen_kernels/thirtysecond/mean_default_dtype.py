"""The partial sums are stored in torch's default dtype: under set_default_dtype(bfloat16) they are rounded to it.

op: mean
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_parts(x_ptr, part_ptr, m, parts, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK):
        cols = part * CHUNK + start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < m, other=0.0)
        total += x.to(tl.float32)
    tl.store(part_ptr + row * parts + part, tl.sum(total, axis=0))


@triton.jit
def add_rest(part_ptr, out_ptr, m, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    places = tl.arange(0, BLOCK)
    x = tl.load(part_ptr + row * parts + places, mask=places < parts, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / m)


def triton_mean(x):
    """Launch two kernels: parts of rows, then one number a row."""
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    chunk = 4096 if m > 4096 else max(16, triton.next_power_of_2(m))
    parts = triton.cdiv(m, chunk)
    partial = torch.empty(rows, parts, device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    add_parts[(rows, parts)](x, partial, m, parts, CHUNK=chunk, BLOCK=min(chunk, 1024))
    add_rest[(rows,)](partial, out, m, parts, BLOCK=triton.next_power_of_2(parts))
    return out
