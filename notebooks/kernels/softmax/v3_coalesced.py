# softmax v3_coalesced, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, x_row_stride, out_row_stride, n_rows, n_cols,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x_ptrs = x_ptr + rows[:, None] * x_row_stride + cols[None, :]
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
    # A row past the end is all minus infinity; zero keeps its exp away from NaN.
    peak = tl.max(x, axis=1)
    peak = tl.where(rows < n_rows, peak, 0.0)
    numerator = tl.exp(x - peak[:, None])
    total = tl.sum(numerator, axis=1)
    out = numerator / tl.where(rows < n_rows, total, 1.0)[:, None]
    tl.store(out_ptr + rows[:, None] * out_row_stride + cols[None, :], out, mask=mask)


def triton_softmax(x):
    if x.dim() == 0:
        raise ValueError("softmax needs at least one dimension")
    flat = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(flat)
    n_rows, n_cols = flat.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    ROWS = max(1, min(4, 2048 // BLOCK_SIZE))
    softmax_kernel[(triton.cdiv(n_rows, ROWS),)](
        flat, out, flat.stride(0), out.stride(0), n_rows, n_cols,
        ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=4,
    )
    return out.view(x.shape)
