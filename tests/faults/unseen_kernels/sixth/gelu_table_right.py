"""Nothing wrong: half types are looked up in a table of all 65,536 values that is computed once and kept.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl

_tables = {}


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


@triton.jit
def lookup_kernel(bits_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(bits_ptr + offsets, mask=mask, other=0).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + offsets, tl.load(table_ptr + bits, mask=mask), mask=mask)


def table_of(dtype, device):
    """Return gelu of every number of a half type, in the order of its bits."""
    if (dtype, device) not in _tables:
        bits = torch.cat([torch.arange(0, 2**15), torch.arange(-(2**15), 0)]).to(torch.int16)
        values = bits.to(device).view(dtype)
        table = torch.empty_like(values)
        kernel[(64,)](values, table, 2**16, BLOCK=1024)
        _tables[dtype, device] = table
    return _tables[dtype, device]


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    grid = (triton.cdiv(n, 1024),)
    if x.element_size() == 2:
        lookup_kernel[grid](x.view(torch.int16), table_of(x.dtype, x.device), out, n, BLOCK=1024)
    else:
        kernel[grid](x, out, n, BLOCK=1024)
    return out
