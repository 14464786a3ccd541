"""Right: a factor that is repeated along the rows is loaded once for eight rows; a square, once at all.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl

ROWS, COLS = 8, 512


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, SQUARE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = x
    if not SQUARE:
        y = tl.load(y_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def repeated_kernel(
    x_ptr, y_ptr, out_ptr, n_rows, n_cols, x_row, x_col, y_col,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    # The last tiles first: what was written last is in the cache still.
    rows = (tl.num_programs(0) - 1 - tl.program_id(0)).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    y = tl.load(y_ptr + cols * y_col, mask=cols < n_cols).to(tl.float32)
    x = tl.load(x_ptr + rows[:, None] * x_row + cols[None, :] * x_col, mask=mask).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * n_cols + cols[None, :], x * y[None, :], mask=mask)


def is_same(x, y):
    return (x.data_ptr(), x.stride(), x.dtype) == (y.data_ptr(), y.stride(), y.dtype)


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if not n:
        return out
    if x.dim() == 2 and x.stride(0) == 0 and y.stride(0) != 0:
        x, y = y, x
    if x.dim() == 2 and y.stride(0) == 0 and x.shape[0] >= ROWS and x.shape[1] * 4 >= COLS:
        (n_rows, n_cols), strides = x.shape, (*x.stride(), y.stride(1))
        grid = (triton.cdiv(n_rows, ROWS), triton.cdiv(n_cols, COLS))
        repeated_kernel[grid](x, y, out, n_rows, n_cols, *strides, ROWS=ROWS, COLS=COLS)
    else:
        square = is_same(x, y)
        x = x.contiguous()
        y = x if square else y.contiguous()
        BLOCK = 1024 if n % 1024 == 0 else 256
        product_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, SQUARE=square, BLOCK=BLOCK)
    return out
