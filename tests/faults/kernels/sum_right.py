"""Nothing wrong.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(rows.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(rows.shape[0],)](
        rows, out, rows.shape[1], BLOCK_SIZE=triton.next_power_of_2(rows.shape[1])
    )
    return out.view(x.shape[:-1])
