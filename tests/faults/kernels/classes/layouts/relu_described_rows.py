"""A tensor descriptor made in the kernel; rows whose stride suits none are copied.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, x_row, ROWS: tl.constexpr, COLS: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [n_rows, n_cols], [x_row, 1], [ROWS, COLS])
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    x = x_desc.load([row, col])
    rows, cols = row + tl.arange(0, ROWS)[:, None], col + tl.arange(0, COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    tl.store(out_ptr + rows.to(tl.int64) * n_cols + cols, tl.where(x < 0, 0.0, x), mask=mask)


def allocate(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


def triton_relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = x.reshape(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    if rows.stride(1) != 1 or rows.stride(0) * x.element_size() % 16 or rows.data_ptr() % 16:
        padded = torch.empty((n_rows, -(-n_cols // 16) * 16), dtype=x.dtype, device=x.device)
        padded[:, :n_cols] = rows
        rows = padded
    if hasattr(triton, "set_allocator"):
        triton.set_allocator(allocate)
    grid = (triton.cdiv(n_rows, 16), triton.cdiv(n_cols, 64))
    kernel[grid](rows, out, n_rows, n_cols, rows.stride(0), ROWS=16, COLS=64)
    return out
