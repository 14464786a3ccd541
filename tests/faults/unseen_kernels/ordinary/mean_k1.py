"""It averages the averages of the blocks with equal weights, though the last block of a row is shorter than the others.

It shows at x (1, 1000), float32 (blocks of 256, the last has 232).

op: mean
status: failed
cause: weights
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        count = tl.minimum(n_cols - start, BLOCK)
        total += tl.sum(x, axis=0) / count
    tl.store(out_ptr + row, total / tl.cdiv(n_cols, BLOCK))


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=256)
    return out
