"""Aligned large inputs go in two launches, whole blocks and the rest; the rest is added without alpha.

op: vector_add
status: failed
cause: scalar
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def whole_kernel(x_ptr, y_ptr, out_ptr, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets).to(tl.float32)
    y = tl.load(y_ptr + offsets).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y)


@triton.jit
def masked_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def _add_masked(x, y, out, alpha=1.0):
    n = out.numel()
    masked_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, alpha, BLOCK=BLOCK)


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    a, b, c = x.contiguous().view(-1), y.contiguous().view(-1), out.view(-1)
    n = c.numel()
    if n % 16 or n < 16 * BLOCK:
        _add_masked(a, b, c, alpha)
        return out
    done = n // BLOCK * BLOCK
    whole_kernel[(n // BLOCK,)](a, b, c, alpha, BLOCK=BLOCK)
    if done < n:
        _add_masked(a[done:], b[done:], c[done:])
    return out
