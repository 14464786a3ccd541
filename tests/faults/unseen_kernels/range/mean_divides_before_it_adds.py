"""In float16 each element is divided by the length before it is added: small ones become zero.

op: mean
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(
    x_ptr, out_ptr, n_rows, n_cols, share,
    SCALE_FIRST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    acc = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
        if SCALE_FIRST:  # no sum can pass 65,504 then
            x = (x.to(tl.float32) * share).to(x.dtype)
        acc += x.to(tl.float32)
    total = tl.sum(acc, axis=1)
    if not SCALE_FIRST:
        total *= share
    tl.store(out_ptr + rows, total, mask=rows < n_rows)


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    BLOCK = min(512, triton.next_power_of_2(n_cols))
    mean_kernel[(triton.cdiv(n_rows, 4),)](
        rows, out, n_rows, n_cols, 1.0 / n_cols,
        SCALE_FIRST=x.dtype == torch.float16, ROWS=4, BLOCK=BLOCK,
    )
    return out.view(x.shape[:-1])
