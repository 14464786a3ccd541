"""Nothing wrong: tensors that are dense in one order are multiplied in the order of their storage, without a copy.

op: vector_mul
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def full_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs).to(tl.float32)
    tl.store(out_ptr + offs, x * tl.load(y_ptr + offs).to(tl.float32))


@triton.jit
def rest_kernel(x_ptr, y_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
    offs = first + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=inside).to(tl.float32)
    tl.store(out_ptr + offs, x * y, mask=inside)


def _is_dense(x):
    """Return whether the elements fill a stretch of memory, each place once."""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def triton_vector_mul(x, y):
    same = all(n == 1 or s == t for n, s, t in zip(x.shape, x.stride(), y.stride(), strict=True))
    if not (same and _is_dense(x)):
        x, y = x.contiguous(), y.contiguous()
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    n, block = x.numel(), 1024
    whole = n // block
    if whole:
        full_kernel[(whole,)](x, y, out, BLOCK=block)
    if n % block:
        rest_kernel[(1,)](x, y, out, whole * block, n, BLOCK=block)
    return out
