"""Row sums are differences of one running sum over eight rows: what is infinite, NaN or huge in a row spoils those after it.

op: mean
status: failed
cause: carry
"""

import torch
import triton
import triton.language as tl


@triton.jit
def prefix_kernel(x_ptr, ends_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    span = tl.minimum(n_rows - first, ROWS) * n_cols
    before = 0.0
    for start in range(0, span, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + first * n_cols + offsets, mask=offsets < span, other=0.0).to(tl.float32)
        prefix = before + tl.cumsum(x, axis=0)
        ends = (offsets < span) & ((offsets + 1) % n_cols == 0)
        tl.store(ends_ptr + first + offsets // n_cols, prefix, mask=ends)
        before += tl.sum(x, axis=0)


@triton.jit
def difference_kernel(ends_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n_rows
    end = tl.load(ends_ptr + rows, mask=mask, other=0.0)
    begin = tl.load(ends_ptr + rows - 1, mask=mask & (rows % ROWS != 0), other=0.0)
    tl.store(out_ptr + rows, (end - begin) / n_cols, mask=mask)


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    ends = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    prefix_kernel[(triton.cdiv(n_rows, 8),)](x, ends, n_rows, n_cols, ROWS=8, BLOCK=1024)
    difference_kernel[(triton.cdiv(n_rows, 256),)](ends, out, n_rows, n_cols, ROWS=8, BLOCK=256)
    return out
