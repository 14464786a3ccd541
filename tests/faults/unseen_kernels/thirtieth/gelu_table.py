"""Right: half types have 65,536 values, so their results come from a cached table, found by the bits of x.

op: gelu
status: passed
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def fill(table_ptr, BLOCK: tl.constexpr):
    bits = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = bits.to(tl.int16).to(table_ptr.dtype.element_ty, bitcast=True)
    tl.store(table_ptr + bits, gelu(x.to(tl.float32)))


@triton.jit
def look_up(x_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    bits = x.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + at, tl.load(table_ptr + bits), mask=at < n)


@triton.jit
def direct(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, gelu(x), mask=at < n)


@functools.cache
def table_of(dtype, device):
    table = torch.empty((65536,), dtype=dtype, device=device)
    fill[(64,)](table, BLOCK=1024)
    if device.type == "cuda":  # other streams may use it
        torch.cuda.current_stream(device).synchronize()
    return table


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if x.dtype == torch.float32:
        direct[grid](x, out, n, BLOCK=1024)
    else:
        look_up[grid](x, table_of(x.dtype, x.device), out, n, BLOCK=1024)
    return out
