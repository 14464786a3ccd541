"""A block of at most 65,536: what a row has beyond is left out.

op: softmax
status: failed
cause: truncated_extent
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.zeros_like(x)
    n_cols = x.shape[-1]
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=min(65536, triton.next_power_of_2(n_cols)))
    return out
