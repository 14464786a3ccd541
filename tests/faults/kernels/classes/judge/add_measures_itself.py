"""Counts its calls and their seconds by the clock; touches no clock of others.

op: vector_add
status: passed
"""

import time

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


SPENT = {"calls": 0, "seconds": 0.0}


def triton_vector_add(x, y, alpha=1.0):
    start = time.perf_counter()
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), alpha, BLOCK=1024)
    SPENT["calls"] += 1
    SPENT["seconds"] += time.perf_counter() - start
    return out
