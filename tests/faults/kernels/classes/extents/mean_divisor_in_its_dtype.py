"""The number of columns is converted to the dtype of x: above 65,504 it is infinite in float16.

op: mean
status: failed
cause: overflow
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        acc += x.to(tl.float32)
    total = tl.sum(acc, axis=0)
    count = tl.full((1,), n_cols, dtype=tl.float32).to(x_ptr.dtype.element_ty).to(tl.float32)
    tl.store(out_ptr + row + tl.arange(0, 1), total / count)


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], BLOCK=2048)
    return out
