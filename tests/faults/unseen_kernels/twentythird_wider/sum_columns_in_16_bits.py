"""Columns are 16-bit numbers where a row has at most 65,536, and so is a column times its step: long rows with a step of 2 or more wrap around.

op: sum
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, out_ptr, m, row_stride, STEP: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < m
        if NARROW:  # half the registers for the addresses of a block
            cols = cols.to(tl.uint16)
        else:
            cols = cols.to(tl.int64)
        total += tl.load(x_ptr + cols * STEP, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = x.reshape(-1, m)
    if rows.stride(1) > 16:  # one sector an element: a copy is cheaper
        rows = rows.contiguous()
    kernel[(rows.shape[0],)](
        rows, out, m, rows.stride(0), STEP=rows.stride(1), NARROW=m <= 65_536,
        BLOCK=min(2048, triton.next_power_of_2(m)),
    )
    return out
