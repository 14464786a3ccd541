"""The launch plan, with its number of programs, is kept for a power of two of rows, so a later call with more rows of the bucket leaves some out.

op: softmax
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

_plans = {}


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    offsets = rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.where((rows < n_rows)[:, None], x, 0.0)
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + offsets, numerator / tl.sum(numerator, axis=1)[:, None], mask=mask)


def plan(n_rows, n_cols):
    """Batches vary a little from call to call: one plan for each power of two."""
    key = (triton.next_power_of_2(n_rows), n_cols)
    if key not in _plans:
        block = triton.next_power_of_2(n_cols)
        rows = max(1, 2048 // block)
        warps = 4 if block <= 2048 else 8
        _plans[key] = ((triton.cdiv(n_rows, rows),), {"ROWS": rows, "BLOCK": block, "num_warps": warps})
    return _plans[key]


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    grid, meta = plan(n_rows, n_cols)
    kernel[grid](x, out, n_rows, n_cols, **meta)
    return out
