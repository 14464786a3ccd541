"""A program keeps its maximum from row to row, as any upper bound will do: a row far below an earlier one of its program is 0 / 0.

op: softmax
status: failed
cause: stale maximum
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    bound = -float("inf")
    for row in range(tl.program_id(0).to(tl.int64), n_rows, tl.num_programs(0)):
        at = row * n_cols
        lanes = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at + cols, mask=cols < n_cols, other=-float("inf"))
            lanes = tl.maximum(lanes, x.to(tl.float32))
        bound = tl.maximum(bound, tl.max(lanes, axis=0))
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at + cols, mask=cols < n_cols, other=-float("inf"))
            total += tl.exp(x.to(tl.float32) - bound)
        inverse = 1.0 / tl.sum(total, axis=0)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at + cols, mask=cols < n_cols, other=-float("inf"))
            tl.store(out_ptr + at + cols, tl.exp(x.to(tl.float32) - bound) * inverse, mask=cols < n_cols)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    block = min(1024, triton.next_power_of_2(n_cols))
    kernel[(min(n_rows, 66),)](x, out, n_rows, n_cols, BLOCK=block)
    return out
