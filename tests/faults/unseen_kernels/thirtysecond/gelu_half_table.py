"""Right: a half type has 65,536 values, so the answers are kept in a table and looked up by the bits of x.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl

_tables = {}


@triton.jit
def gelu_each(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@triton.jit
def fill(table_ptr, BLOCK: tl.constexpr):
    """The place in the table is the number's bits."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = places.to(tl.int16).to(table_ptr.dtype.element_ty, bitcast=True).to(tl.float32)
    tl.store(table_ptr + places, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)))


@triton.jit
def look_up(bits_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(bits_ptr + offsets, mask=offsets < n, other=0).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + offsets, tl.load(table_ptr + bits), mask=offsets < n)


def _table(dtype, device):
    if (dtype, device) not in _tables:
        table = torch.empty(65536, dtype=dtype, device=device)
        fill[(64,)](table, BLOCK=1024)
        if device.type == "cuda":  # other streams may read it
            torch.cuda.current_stream(device).synchronize()
        _tables[dtype, device] = table
    return _tables[dtype, device]


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    grid = (triton.cdiv(n, 1024),)
    if x.element_size() == 2:
        look_up[grid](x.view(torch.int16), _table(x.dtype, x.device), out, n, BLOCK=1024)
    else:
        gelu_each[grid](x, out, n, BLOCK=1024)
    return out
