# sum v3_coalesced, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_COLS = 65536


@triton.jit
def sum_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = rows < n_rows - first
    mask = inside[:, None] & (cols < n_cols)[None, :]
    offsets = first * n_cols + rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0, eviction_policy="evict_first")
    total = tl.sum(x.to(tl.float32), axis=1)
    tl.store(out_ptr + first + rows, total, mask=inside)


def triton_sum(x):
    check(x)
    if not x.numel():
        return x.new_zeros(x.shape[:-1])
    x = x.contiguous()
    out = x.new_empty(x.shape[:-1])
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    ROWS = max(1, min(4, 2048 // BLOCK_SIZE))
    sum_kernel[(triton.cdiv(n_rows, ROWS),)](
        x, out, n_rows, n_cols, ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE
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
    if x.shape[-1] > MAX_COLS:
        raise ValueError(f"rows of {x.shape[-1]} elements: one program holds at most {MAX_COLS}")
