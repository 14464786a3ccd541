"""Right: large 16-bit inputs are looked up in a table of all 65536 values, made again in each call.

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
def direct_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    y = gelu(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def number_kernel(bits_ptr, BLOCK: tl.constexpr):
    # Place i of the table holds the bits i.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(bits_ptr + offsets, offsets.to(tl.int16))


@triton.jit
def table_kernel(table_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = gelu(tl.load(table_ptr + offsets))
    tl.store(table_ptr + offsets, y.to(table_ptr.dtype.element_ty))


@triton.jit
def lookup_kernel(bits_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    at = tl.load(bits_ptr + offsets, mask=mask, other=0).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + offsets, tl.load(table_ptr + at, mask=mask), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 2048),)
    if x.element_size() != 2 or n <= 65536:
        direct_kernel[grid](x, out, n, BLOCK=2048)
        return out
    table = torch.empty(65536, dtype=torch.int16, device=x.device)
    number_kernel[(32,)](table, BLOCK=2048)
    table_kernel[(32,)](table.view(x.dtype), BLOCK=2048)
    lookup_kernel[grid](x.view(torch.int16), table, out.view(torch.int16), n, BLOCK=2048)
    return out
