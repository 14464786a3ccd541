"""Right: half types are looked up in a table of all 65,536 results, made at the first call and kept for each dtype.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl

HALF = (torch.float16, torch.bfloat16)
_tables = {}  # of each dtype and device; never written again


@triton.jit
def gelu(x):
    x = x.to(tl.float32)
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def table_kernel(table_ptr, BLOCK_SIZE: tl.constexpr):
    """The result for each pattern of bits, at that pattern as an unsigned number."""
    bits = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = bits.to(tl.int16).to(table_ptr.dtype.element_ty, bitcast=True)
    tl.store(table_ptr + bits, gelu(x))


@triton.jit
def look_up_kernel(bits_ptr, table_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    bits = tl.load(bits_ptr + offsets, mask=mask, other=0).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + offsets, tl.load(table_ptr + bits, mask=mask), mask=mask)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, gelu(x), mask=mask)


def table_of(dtype, device):
    key = (dtype, device)
    if key not in _tables:
        table = torch.empty(2**16, dtype=dtype, device=device)
        table_kernel[(64,)](table, BLOCK_SIZE=1024)
        if device.type == "cuda":  # a call on another stream may come next
            torch.cuda.current_stream(device).synchronize()
        _tables[key] = table
    return _tables[key]


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if not n_elements:
        return out
    grid = (triton.cdiv(n_elements, 1024),)
    if x.dtype in HALF:
        table = table_of(x.dtype, x.device)
        look_up_kernel[grid](x.view(torch.int16), table, out, n_elements, BLOCK_SIZE=1024)
    else:
        gelu_kernel[grid](x, out, n_elements, BLOCK_SIZE=1024)
    return out
