"""Large tensors are divided into 256 equal runs, a multiple of 16 elements each, and one block of 1,024 elements does the rest: the
rest may be up to 4,095 elements long.

op: vector_mul
status: failed
cause: division
"""

import torch
import triton
import triton.language as tl

RUNS = 256


@triton.jit
def block(x_ptr, y_ptr, out_ptr, places, end):
    mask = places < end
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, x * y, mask=mask)


@triton.jit
def small_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block(x_ptr, y_ptr, out_ptr, tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), n)


@triton.jit
def runs_kernel(x_ptr, y_ptr, out_ptr, n, length, RUNS: tl.constexpr, BLOCK: tl.constexpr):
    """A run a program; the last program has what is left, less than the others."""
    first = tl.program_id(0).to(tl.int64) * length
    if tl.program_id(0) == RUNS:
        block(x_ptr, y_ptr, out_ptr, first + tl.arange(0, BLOCK), n)
    else:
        for start in range(0, length, BLOCK):
            block(x_ptr, y_ptr, out_ptr, first + start + tl.arange(0, BLOCK), first + length)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if not n:
        return out
    if n < 2**18:
        small_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out
    length = n // (RUNS * 16) * 16  # a run begins at a whole vector
    runs_kernel[(RUNS + 1,)](x, y, out, n, length, RUNS=RUNS, BLOCK=1024)
    return out
