"""Right: past 65,536 elements there are no masks; the last block ends at the last element, so that it overlaps the block before and writes the same values again.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    x = x.to(tl.float32)
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def small_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, gelu(x), mask=i < n)


@triton.jit
def large_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """Return the program's blocks from the back to the front; the last of all is moved to the left."""
    for k in tl.static_range(BLOCKS):
        block = tl.program_id(0).to(tl.int64) * BLOCKS + (BLOCKS - 1 - k)
        first = tl.minimum(block * BLOCK, n - BLOCK)
        i = first + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, gelu(tl.load(x_ptr + i)))


def triton_gelu(x):
    x = x.contiguous()
    n = x.numel()
    out = torch.empty_like(x)
    if n == 0:
        return out
    if n <= 65536:
        small_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    else:
        large_kernel[(triton.cdiv(n, 4 * 2048),)](x, out, n, BLOCK=2048, BLOCKS=4)
    return out
