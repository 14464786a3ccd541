"""The rows a program are kept for each pair of rows and columns.

op: softmax
status: passed
held_out: yes
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, each, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    first = tl.program_id(0) * each
    for row in range(first, min(n_rows, first + each)):
        places = row * n_cols + cols
        x = tl.load(x_ptr + places, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + places, power / tl.sum(power, axis=0), mask=cols < n_cols)


class Plan:
    def __init__(self, n_rows, n_cols):
        self.each = triton.cdiv(n_rows, 64)
        self.programs = triton.cdiv(n_rows, self.each)
        self.block = triton.next_power_of_2(n_cols)


PLANS = {}


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    plan = PLANS.setdefault((n_rows, n_cols), Plan(n_rows, n_cols))
    kernel[(plan.programs,)](rows, out, n_rows, n_cols, plan.each, BLOCK=plan.block)
    return out.view(x.shape)
