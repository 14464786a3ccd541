"""A multiple of 256 that is no power of two counts as even, though the block is the next power of two: padding is summed.

op: softmax
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    # Lanes past the end read the last element: no mask on the load.
    x = tl.load(x_ptr + row * n_cols + tl.minimum(cols, n_cols - 1)).to(tl.float32)
    if not EVEN:
        x = tl.where(cols < n_cols, x, -float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * n_cols + cols, out, mask=cols < n_cols)


WIDTH = 256


def triton_softmax(x):
    rows = x.contiguous()
    out = torch.empty_like(rows)
    n_cols = x.shape[-1]
    BLOCK = triton.next_power_of_2(n_cols)
    even = n_cols % min(BLOCK, WIDTH) == 0
    kernel[(rows.numel() // n_cols,)](rows, out, n_cols, EVEN=even, BLOCK=BLOCK)
    return out
