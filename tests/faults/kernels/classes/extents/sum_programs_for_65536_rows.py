"""There are at most 1,024 programs of 64 rows each.

op: sum
status: failed
cause: truncated_extent
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + rows, tl.sum(acc, axis=1), mask=rows < n_rows)


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(min(1024, triton.cdiv(n_rows, 64)),)](
        x, out, n_rows, n_cols, ROWS=64, BLOCK=min(256, triton.next_power_of_2(n_cols))
    )
    return out
