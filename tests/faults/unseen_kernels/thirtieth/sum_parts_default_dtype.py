"""The workspace of long rows has torch's default dtype: after torch.set_default_dtype(torch.float16) the parts are float16.

op: sum
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl

PART = 4096


@triton.jit
def part_kernel(x_ptr, out_ptr, m, part, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * part
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, part, BLOCK):
        cols = first + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * tl.num_programs(1) + tl.program_id(1), tl.sum(total, axis=0))


def sums(x, out, rows, m, part):
    BLOCK = min(1024, triton.next_power_of_2(part))
    part_kernel[(rows, triton.cdiv(m, part))](x, out, m, part, BLOCK=BLOCK)


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    rows = x.numel() // m
    if m <= 2 * PART or rows >= 1024:
        sums(x, out, rows, m, m)
        return out
    # Few long rows: PART elements a program, then the parts, by the same kernel.
    parts = triton.cdiv(m, PART)
    work = torch.empty((rows, parts), device=x.device)
    sums(x, work, rows, m, PART)
    sums(work, out, rows, parts, parts)
    return out
