"""The sums of the parts of a row lie in a workspace of torch's default dtype, which a user may have set to bfloat16.

op: mean
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, sums_ptr, m, parts, scale, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row * parts + part, tl.sum(x, axis=0) * scale)


@triton.jit
def rows_kernel(sums_ptr, out_ptr, parts, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, parts, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(sums_ptr + row * parts + at, mask=at < parts, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) * scale)


def triton_mean(x):
    x = x.contiguous() if x.dim() else x.reshape(1)
    m = x.shape[-1]
    if m == 0:
        return torch.full(x.shape[:-1], float("nan"), dtype=x.dtype, device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = x.numel() // m
    if not rows:
        return out
    BLOCK = min(2048, triton.next_power_of_2(m))
    parts = triton.cdiv(m, BLOCK)
    if parts == 1:
        parts_kernel[(rows,)](x, out, m, 1, 1.0 / m, BLOCK=BLOCK)
        return out
    # Few long rows would leave most of the device idle: each part of a row is a program.
    sums = torch.empty((rows, parts), device=x.device)
    parts_kernel[(rows * parts,)](x, sums, m, parts, 1.0, BLOCK=BLOCK)
    rows_kernel[(rows,)](sums, out, parts, 1.0 / m, BLOCK=min(1024, triton.next_power_of_2(parts)))
    return out
