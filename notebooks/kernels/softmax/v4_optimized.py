# softmax v4_optimized, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

MAX_IN_REGISTERS = 16384


@triton.jit
def rows_kernel(
    x_ptr, out_ptr, x_row_stride, out_row_stride, n_rows, n_cols,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = rows < n_rows
    mask = inside[:, None] & (cols < n_cols)[None, :]
    x_ptrs = x_ptr + rows[:, None] * x_row_stride + cols[None, :]
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
    peak = tl.where(inside, tl.max(x, axis=1), 0.0)
    numerator = tl.exp(x - peak[:, None])
    total = tl.where(inside, tl.sum(numerator, axis=1), 1.0)
    out = numerator / total[:, None]
    tl.store(out_ptr + rows[:, None] * out_row_stride + cols[None, :], out, mask=mask)


@triton.jit
def tiles_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - m) / s, mask=mask)


def triton_softmax(x):
    if x.dim() == 0:
        raise ValueError("softmax needs at least one dimension")
    flat = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(flat)
    n_rows, n_cols = flat.shape
    strides = (flat.stride(0), out.stride(0))
    if n_cols > MAX_IN_REGISTERS:
        tiles_kernel[(n_rows,)](flat, out, *strides, n_cols, BLOCK_SIZE=4096, num_warps=8)
        return out.view(x.shape)
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    ROWS = max(1, min(4, 2048 // BLOCK_SIZE))
    num_warps = 4 if BLOCK_SIZE <= 2048 else 8 if BLOCK_SIZE <= 8192 else 16
    rows_kernel[(triton.cdiv(n_rows, ROWS),)](
        flat, out, *strides, n_rows, n_cols,
        ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps,
    )
    return out.view(x.shape)
