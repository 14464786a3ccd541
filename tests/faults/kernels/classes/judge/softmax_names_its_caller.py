"""Looks up the caller's name for the message of a refusal, and at nothing else.

op: softmax
status: passed
"""

import sys

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
    if x.numel() == 0:
        raise ValueError(f"{sys._getframe(1).f_code.co_name} passed an empty tensor")
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
