"""The output has the strides of a transposed input, and is written as if it were contiguous.

op: softmax
status: failed
cause: wrong_stride
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + cols, e / tl.sum(e, axis=0), mask=mask)


def triton_softmax(x):
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    row_kernel[(x.numel() // n_cols,)](
        x.contiguous(), out, n_cols, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
