"""The table of all 16-bit answers is kept by width of the element, so that float16 and bfloat16 share the first one's.

op: gelu
status: failed
cause: stale cache
"""

import torch
import triton
import triton.language as tl

_TABLES = {}


@triton.jit
def _gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0).to(tl.float32)
    half = 0.5 * x
    tl.store(out_ptr + i, half + half * tl.erf(x * 0.7071067811865476), mask=m)


@triton.jit
def _look_up(bits_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    code = tl.load(bits_ptr + i, mask=m, other=0).to(tl.int32) & 0xFFFF
    tl.store(out_ptr + i, tl.load(table_ptr + code, mask=m, other=0), mask=m)


def _direct(x):
    out = torch.empty_like(x)
    n = x.numel()
    _gelu[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


def _table(x):
    key = (x.device, x.element_size())
    if key not in _TABLES:
        codes = torch.arange(1 << 16, dtype=torch.int32, device=x.device).to(torch.int16)
        _TABLES[key] = _direct(codes.view(x.dtype)).view(torch.int16)
    return _TABLES[key]


def triton_gelu(x):
    x = x.contiguous()
    if x.element_size() != 2 or x.numel() < 4096:
        return _direct(x)
    # 128 KiB of answers stay in the cache: no special function at all.
    out = torch.empty_like(x)
    n = x.numel()
    _look_up[(triton.cdiv(n, 1024),)](x.view(torch.int16), _table(x), out.view(torch.int16), n, BLOCK=1024)
    return out
