"""The plan of the parts of a row is stored by the next power of two: 8000 columns after 5000 are read up to 5000.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_plans = {}


@triton.jit
def parts(x_ptr, part_ptr, cols, chunk, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * chunk
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, chunk, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        inside = (lane < chunk) & (first + lane < cols)
        total += tl.load(x_ptr + row * cols + first + lane, mask=inside, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * tl.num_programs(1) + tl.program_id(1), tl.sum(total, axis=0))


@triton.jit
def finish(part_ptr, out_ptr, splits, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + row * splits + at, mask=at < splits, other=0.0)
    tl.store(out_ptr + row, tl.sum(part, axis=0))


def plan(rows, cols, dtype):
    """Splits of a row and columns a split, for about this size."""
    key = (triton.next_power_of_2(rows), triton.next_power_of_2(cols), dtype)
    if key not in _plans:
        splits = 1 if cols <= 2048 or rows > 256 else 8
        _plans[key] = splits, triton.cdiv(cols, splits) if splits > 1 else triton.next_power_of_2(cols)
    return _plans[key]


def triton_sum(x):
    x = x.contiguous()
    cols = x.shape[-1]
    rows = x.numel() // cols
    splits, chunk = plan(rows, cols, x.dtype)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    part = torch.empty(rows, splits, dtype=torch.float32, device=x.device)
    parts[(rows, splits)](x, part, cols, chunk, BLOCK=min(1024, triton.next_power_of_2(chunk)))
    finish[(rows,)](part, out, splits, BLOCK=triton.next_power_of_2(splits))
    return out
