"""Plans are saved by the bits of n_cols: that of 1024 columns is taken for 1500 too, and covers 1024.

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
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.where(rows < n_rows, x, 0.0)
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + rows * n_cols + cols, numerator / tl.sum(numerator, axis=1)[:, None], mask=mask)


def plan(n_cols):
    size = n_cols.bit_length()
    if size not in _plans:
        block = triton.next_power_of_2(n_cols)
        rows = max(1, 2048 // block)
        _plans[size] = {"BLOCK": block, "ROWS": rows, "num_warps": 8 if block > 2048 else 4}
    return _plans[size]


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    chosen = plan(n_cols)
    kernel[(triton.cdiv(n_rows, chosen["ROWS"]),)](rows, out, n_rows, n_cols, **chosen)
    return out.view(x.shape)
