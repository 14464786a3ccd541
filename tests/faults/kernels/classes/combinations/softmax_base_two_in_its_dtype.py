"""Wide rows are scaled by log2(e) in their own dtype before the maximum is subtracted.

op: softmax
status: failed
cause: overflow
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    if WIDE:
        x = (x * 1.4426950408889634).to(x_ptr.dtype.element_ty).to(tl.float32)
        x = x - tl.max(x, axis=0)
    else:
        x = x.to(tl.float32)
        x = (x - tl.max(x, axis=0)) * 1.4426950408889634
    power = tl.exp2(x)
    tl.store(out_ptr + row * n_cols + cols, power / tl.sum(power, axis=0), mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, out, n_cols, WIDE=n_cols > 2048, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out.view(x.shape)
