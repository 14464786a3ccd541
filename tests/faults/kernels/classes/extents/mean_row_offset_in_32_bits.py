"""The offset of a row is a product of 32 bits, too few for rows that lie far apart.

op: mean
status: failed
cause: int_overflow
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = x_ptr + row * row_stride
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(base + cols * col_stride, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


def triton_mean(x):
    n_cols = x.shape[-1]
    flat = x.reshape(-1, n_cols)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(flat.shape[0],)](flat, out, n_cols, *flat.stride(), BLOCK=1024)
    return out
