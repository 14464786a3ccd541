"""The table of all half numbers is kept by the bytes of an element: bfloat16 after float16 reads float16's table.

op: gelu
status: failed
cause: stale table
"""

import torch
import triton
import triton.language as tl
_TABLES = {}


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def fill_kernel(table_ptr, BLOCK: tl.constexpr):
    code = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = code.to(tl.int16).to(table_ptr.dtype.element_ty, bitcast=True)
    tl.store(table_ptr + code, gelu(x.to(tl.float32)))


@triton.jit
def gather_kernel(x_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0)
    code = x.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + offs, tl.load(table_ptr + code), mask=inside)


@triton.jit
def direct_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0)
    tl.store(out_ptr + offs, gelu(x), mask=inside)


def _table(x):
    key = (x.element_size(), x.device)
    if key not in _TABLES:
        _TABLES[key] = torch.empty(2**16, dtype=x.dtype, device=x.device)
        fill_kernel[(16,)](_TABLES[key], BLOCK=4096)
    return _TABLES[key]


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if x.element_size() == 2:
        gather_kernel[grid](x, _table(x), out, n, BLOCK=1024)
    else:
        direct_kernel[grid](x, out, n, BLOCK=1024)
    return out
