"""The block and number of warps are kept by shape; no tensor is.

op: softmax
status: passed
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


CHOICES = {}


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    if n_cols not in CHOICES:
        BLOCK = triton.next_power_of_2(n_cols)
        CHOICES[n_cols] = {"BLOCK": BLOCK, "num_warps": 4 if BLOCK < 2048 else 8}
    kernel[(x.numel() // n_cols,)](x, out, n_cols, **CHOICES[n_cols])
    return out
