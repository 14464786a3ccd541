"""A plan is kept for each width only, but its programs walk over all rows of the call, so the number of rows does not matter.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl

_plans = {}


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    for first in range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS):
        rows = (first + tl.arange(0, ROWS)).to(tl.int64)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        offsets = rows[:, None] * n_cols + cols[None, :]
        x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        x = tl.where((rows < n_rows)[:, None], x, 0.0)
        numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
        tl.store(out_ptr + offsets, numerator / tl.sum(numerator, axis=1)[:, None], mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols not in _plans:
        block = triton.next_power_of_2(n_cols)
        rows = max(1, 2048 // block)
        # The first call's number of rows sets how many programs there are, for ever.
        _plans[n_cols] = ((max(1, min(64, triton.cdiv(n_rows, rows))),), {"ROWS": rows, "BLOCK": block})
    grid, meta = _plans[n_cols]
    kernel[grid](x, out, n_rows, n_cols, **meta)
    return out
