"""Partial sums of long rows are kept in torch's default dtype: a half type, where a model was loaded so.

op: sum
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl

PART = 2048  # elements of a row that one program adds


@triton.jit
def part_kernel(x_ptr, out_ptr, m, parts, stride, PART: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, PART, BLOCK):
        at = part * PART + start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row.to(tl.int64) * stride + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row.to(tl.int64) * parts + part, tl.sum(acc, axis=0))


@triton.jit
def whole_kernel(partial_ptr, out_ptr, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, parts, BLOCK):
        at = start + tl.arange(0, BLOCK)
        partial = tl.load(partial_ptr + row.to(tl.int64) * parts + at, mask=at < parts, other=0.0)
        acc += partial.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    m = x.shape[-1]
    flat = x.reshape(-1, m)
    if flat.stride(-1) != 1:
        flat = flat.contiguous()
    rows = flat.shape[0]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if rows == 0:
        return out
    parts = max(1, triton.cdiv(m, PART))
    block = min(1024, max(16, triton.next_power_of_2(m)))
    # float32, whatever x is: the sums of the parts are added once more.
    partial = torch.empty((rows, parts), device=x.device) if parts > 1 else out
    part_kernel[(rows, parts)](flat, partial, m, parts, flat.stride(0), PART=PART, BLOCK=block)
    if parts > 1:
        whole_kernel[(rows,)](partial, out, parts, BLOCK=256)
    return out
