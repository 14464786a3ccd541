# softmax v4_optimized, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = rows < n_rows - first
    mask = inside[:, None] & (cols < n_cols)[None, :]
    offsets = first * n_cols + rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    # A row past the end is all minus infinity; 0 and 1 keep it away from NaN.
    peak = tl.where(inside, tl.max(x, axis=1), 0.0)[:, None]
    numerator = tl.exp2((x - peak) * 1.4426950408889634)
    total = tl.where(inside, tl.sum(numerator, axis=1), 1.0)[:, None]
    tl.store(out_ptr + offsets, numerator / total, mask=mask)


@triton.jit
def tiles_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * n_cols
    x_ptr += start_of_row
    out_ptr += start_of_row
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        # While a row is all minus infinity, exp(m - m_new) would be exp(-inf + inf), NaN.
        s = s * tl.where(m == m_new, 1.0, tl.exp(m - m_new)) + tl.sum(
            tl.where(x == -float("inf"), 0.0, tl.exp(x - m_new)), axis=0
        )
        m = m_new
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - m) / s, mask=mask)


def warps(BLOCK_SIZE, element_size):
    if BLOCK_SIZE <= 256:
        return 1
    if BLOCK_SIZE <= 1024:
        return 2 if element_size == 4 else 4
    return min(4 * BLOCK_SIZE // 4096, 16) if BLOCK_SIZE > 4096 else 4


def triton_softmax(x):
    check(x)
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK_SIZE = triton.next_power_of_2(n_cols)
        if n_cols > 32768:
            tiles_kernel[(n_rows,)](x, out, n_cols, BLOCK_SIZE=8192, num_warps=16)
            return out
        ROWS = max(1, 256 // BLOCK_SIZE)
        rows_kernel[(triton.cdiv(n_rows, ROWS),)](
            x, out, n_rows, n_cols,
            ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=warps(BLOCK_SIZE, x.element_size()),
        )
    return out


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
    if x.dim() == 0:
        raise ValueError("x needs at least one dimension: the last one is reduced")
