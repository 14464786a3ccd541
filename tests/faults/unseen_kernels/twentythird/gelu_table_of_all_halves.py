"""Right: for large inputs of a half type, the results of all 65,536 bit patterns are computed first, then looked up.

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
def table_kernel(table_ptr, BLOCK: tl.constexpr):
    patterns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = patterns.to(tl.int16).to(table_ptr.dtype.element_ty, bitcast=True)
    tl.store(table_ptr + patterns, gelu(x))


@triton.jit
def lookup_kernel(bits_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    pattern = tl.load(bits_ptr + places, mask=mask, other=0).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + places, tl.load(table_ptr + pattern), mask=mask)


@triton.jit
def direct_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    tl.store(out_ptr + places, gelu(tl.load(x_ptr + places, mask=mask)), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if n >= 2**16 and x.element_size() == 2:
        # Not kept for the next call: a table of another stream may not be ready.
        table = torch.empty(2**16, dtype=x.dtype, device=x.device)
        table_kernel[(64,)](table, BLOCK=1024)
        lookup_kernel[grid](x.view(torch.int16), table, out, n, BLOCK=1024)
    elif n:
        direct_kernel[grid](x, out, n, BLOCK=1024)
    return out
