"""Right: a workspace of partial sums, never cleared, is saved per device and stream and shared by all sizes that fit.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl

_partials = {}


@triton.jit
def part_kernel(x_ptr, part_ptr, m, parts, length, row_stride, BLOCK: tl.constexpr):
    part = tl.program_id(0) % parts
    row = tl.program_id(0) // parts
    total = tl.zeros((BLOCK,), tl.float32)
    end = tl.minimum(m, (part + 1) * length)
    for start in range(part * length, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * row_stride + cols, mask=cols < end, other=0.0)
        total += x.to(tl.float32)
    # Parts lie by part, then row; every one of them is written, also one without elements.
    rows = tl.num_programs(0) // parts
    tl.store(part_ptr + part.to(tl.int64) * rows + row, tl.sum(total, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, rows, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        total += tl.load(part_ptr + part * rows + row, mask=row < rows, other=0.0)
    tl.store(out_ptr + row, total, mask=row < rows)


def workspace(device, n):
    """Return at least n numbers, of whatever value: of the last call on this stream."""
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    saved = _partials.get((device, stream))
    if saved is None or saved.numel() < n:
        size = triton.next_power_of_2(n)
        saved = _partials[device, stream] = torch.empty(size, dtype=torch.float32, device=device)
    return saved


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    block = min(512, triton.next_power_of_2(m))
    parts = max(1, min(64, 256 // rows))
    length = triton.cdiv(triton.cdiv(m, parts), block) * block
    partials = workspace(x.device, rows * parts)
    part_kernel[(rows * parts,)](x, partials, m, parts, length, m, BLOCK=block)
    join_kernel[(triton.cdiv(rows, 128),)](partials, out, rows, parts, BLOCK=128)
    return out
