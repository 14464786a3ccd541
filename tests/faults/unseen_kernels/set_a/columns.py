"""Nothing wrong: rows stand upright, eight side by side, walked from the bottom up; the sum is divided out in the exponent.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _tile(x_ptr, first, n_rows, n_cols, row_stride, col_stride, COLS: tl.constexpr, ROWS: tl.constexpr):
    col = first + tl.arange(0, COLS)[:, None].to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[None, :]
    m = (row < n_rows) & (col < n_cols)
    x = tl.load(x_ptr + row * row_stride + col * col_stride, mask=m, other=-float("inf"))
    return x.to(tl.float32), row * n_cols + col, m


@triton.jit
def _softmax(
    x_ptr, out_ptr, n_rows, n_cols, row_stride, col_stride, n_tiles,
    COLS: tl.constexpr, ROWS: tl.constexpr,
):
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for back in range(0, n_tiles):
        x, _, _ = _tile(
            x_ptr, (n_tiles - 1 - back) * COLS, n_rows, n_cols, row_stride, col_stride, COLS, ROWS
        )
        new = tl.maximum(top, tl.max(x, axis=0))
        # As long as a row has shown -inf only, count from zero: exp makes it 0, not NaN.
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base[None, :]), axis=0)
        top = new
    # log(0) = -inf where a whole row is -inf: -inf - -inf is the NaN that is asked for.
    base = tl.where(top == -float("inf"), 0.0, top)
    logged = tl.log(total)
    for tile in range(0, n_tiles):
        x, at, m = _tile(x_ptr, tile * COLS, n_rows, n_cols, row_stride, col_stride, COLS, ROWS)
        tl.store(out_ptr + at, tl.exp((x - base[None, :]) - logged[None, :]), mask=m)


def triton_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    plane = x.reshape(-1, x.shape[-1])
    n_rows, n_cols = plane.shape
    cols = min(512, triton.next_power_of_2(n_cols))
    _softmax[(triton.cdiv(n_rows, 8),)](
        plane, out, n_rows, n_cols, plane.stride(0), plane.stride(1), triton.cdiv(n_cols, cols),
        COLS=cols, ROWS=8,
    )
    return out
