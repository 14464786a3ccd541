"""Rows of a batch are found by the stride of the last but one dimension alone.

op: softmax
status: failed
cause: wrong_stride
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols * col_stride, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, power / tl.sum(power, axis=0), mask=mask)


def triton_softmax(x):
    n_cols = x.shape[-1]
    row_stride = x.stride(-2) if x.dim() > 1 else 0
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(x.numel() // n_cols,)](
        x, out, n_cols, row_stride, x.stride(-1), BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
