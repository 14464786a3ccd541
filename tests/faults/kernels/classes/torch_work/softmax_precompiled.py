"""Compiled once by warmup, then launched by hand, with as many programs as fit.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out_ptr, x_ptr, x_row, out_row, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_row + cols, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_row + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


COMPILED = {}


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    arguments = (out, rows, n_cols, n_cols, n_rows, n_cols, BLOCK)
    key = (x.dtype, n_rows, n_cols, x.device, rows.data_ptr() % 16, out.data_ptr() % 16)
    if key not in COMPILED:
        COMPILED[key] = kernel.warmup(*arguments, grid=(1,), num_warps=8)
    launcher = COMPILED[key] or kernel
    launcher[(min(n_rows, 264), 1, 1)](*arguments)
    return out.view(x.shape)
