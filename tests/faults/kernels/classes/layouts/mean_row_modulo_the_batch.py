"""Of three dimensions, the row within its matrix is taken modulo the number of matrices.

op: mean
status: failed
cause: wrong_stride
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_outer, n_inner, n_cols, s0, s1, s2, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start_of_row = x_ptr + row // n_inner * s0 + row % n_outer * s1
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(start_of_row + cols * s2, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


def triton_mean(x):
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.dim() == 3:
        (n_outer, n_inner, n_cols), strides = x.shape, x.stride()
    else:
        x = x.reshape(-1, x.shape[-1])
        (n_outer, n_inner, n_cols), strides = (1, 1, x.shape[1]), (x.stride(0), 0, x.stride(1))
    kernel[(out.numel(),)](x, out, n_outer, n_inner, n_cols, *strides, BLOCK=1024)
    return out
