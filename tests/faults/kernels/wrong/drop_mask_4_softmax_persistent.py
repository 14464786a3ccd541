"""A load, store or atomic without its mask.

op: softmax
status: wrong_values
from: softmax_persistent
operator: drop_mask
seed: 4
was: tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float('inf'))
now: tl.load(x_ptr + row * n_cols + cols)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n_cols + cols).to(tl.float32)
        numerator = tl.exp2((x - tl.max(x, axis=0)) * 1.4426950408889634)
        tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(min(n_rows, 96),)](rows, out, n_rows, n_cols, BLOCK=BLOCK)
    return out.view(x.shape)
