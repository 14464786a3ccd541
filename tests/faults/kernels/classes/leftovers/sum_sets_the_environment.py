"""The call sets a variable of the environment for allocations, and leaves it set.

op: sum
status: failed
cause: side_effect
round: second
"""

import os

import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.reduce(acc, 0, add))


def triton_sum(x):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=1024)
    return out
