"""If a leading stride is zero all rows are taken for copies of the first; with two leading dimensions only one may be expanded.

op: mean
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, copies, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0)
        total += x.to(tl.float32)
    mean = tl.sum(total, axis=1) / n_cols
    for copy in range(copies):
        tl.store(out_ptr + rows + copy * n_rows, mean, mask=rows < n_rows)


def triton_mean(x):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, copies = out.numel(), 1
    if any(s == 0 and n > 1 for s, n in zip(x.stride()[:-1], x.shape[:-1], strict=True)):
        # expanded rows: read one, write all
        x, n_rows, copies = x[(0,) * (x.dim() - 1)], 1, n_rows
    x = x.contiguous()
    block = min(512, triton.next_power_of_2(n_cols))
    rows = max(1, 1024 // block)
    kernel[(triton.cdiv(n_rows, rows),)](x, out, n_rows, n_cols, copies, ROWS=rows, BLOCK=block)
    return out
