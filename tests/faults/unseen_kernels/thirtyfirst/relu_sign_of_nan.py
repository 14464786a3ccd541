"""A value with its sign bit set becomes zero, two float16 values an int32: a NaN with that bit as well.

op: relu
status: failed
cause: nan
"""

import torch
import triton
import triton.language as tl


@triton.jit
def words_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, tl.where(words < 0, 0, words), mask=at < n)


@triton.jit
def pairs_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(x_ptr + at, mask=at < n, other=0)
    # The sign of the upper half is the word's, that of the lower one is bit 15.
    low = tl.where((words & 0x8000) != 0, 0, words & 0xFFFF)
    high = tl.where(words < 0, 0, words & 0x7FFF0000)
    tl.store(out_ptr + at, high | low, mask=at < n)


@triton.jit
def values_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(x.to(tl.float32) <= 0.0, 0.0, x.to(tl.float32)), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if not n:
        return out
    x_flat, out_flat = x.view(-1), out.view(-1)
    run = values_kernel
    if x.dtype == torch.float32:
        run = words_kernel
        x_flat, out_flat = x_flat.view(torch.int32), out_flat.view(torch.int32)
    elif x.dtype == torch.float16 and n % 2 == 0 and x.storage_offset() % 2 == 0:
        run, n = pairs_kernel, n // 2
        x_flat, out_flat = x_flat.view(torch.int32), out_flat.view(torch.int32)
    run[(triton.cdiv(n, 1024),)](x_flat, out_flat, n, BLOCK=1024)
    return out
