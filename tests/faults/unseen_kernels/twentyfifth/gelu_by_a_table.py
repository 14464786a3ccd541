"""Right: a large input of a half type looks its results up, in a table of all 65,536 bit patterns made in each call.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl

PATTERNS = 2**16


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def table_kernel(table_ptr, BLOCK: tl.constexpr):
    """Return the entry i holds gelu of the number whose bits are i; from 32,768 on those are negative."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = i.to(tl.uint16).to(table_ptr.dtype.element_ty, bitcast=True)
    tl.store(table_ptr + i, gelu(x.to(tl.float32)))


@triton.jit
def lookup_kernel(bits_ptr, table_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_elements
    bits = tl.load(bits_ptr + at, mask=mask, other=0)
    index = bits.to(tl.int32) & 0xFFFF  # a set sign bit would make it negative
    tl.store(out_ptr + at, tl.load(table_ptr + index), mask=mask)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_elements
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gelu(x), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements == 0:
        return out
    grid = (triton.cdiv(n_elements, 1024),)
    if x.element_size() == 2 and n_elements > PATTERNS:
        table = torch.empty(PATTERNS, dtype=x.dtype, device=x.device)
        table_kernel[(PATTERNS // 2048,)](table, BLOCK=2048)
        lookup_kernel[grid](x.view(torch.int16), table, out, n_elements, BLOCK=1024)
    else:
        gelu_kernel[grid](x, out, n_elements, BLOCK=1024)
    return out
