"""bfloat16 as two numbers in an int32, taken apart by shifts and rounded to even by hand; the odd last
element by a scalar program; other dtypes plain.

op: vector_mul
status: passed
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _round(value):
    bits = value.to(tl.uint32, bitcast=True)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return tl.where(value != value, (bits >> 16) | 0x40, rounded)


@triton.jit
def _packed(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0).to(tl.uint32, bitcast=True)
    b = tl.load(y + at, mask=at < n, other=0).to(tl.uint32, bitcast=True)
    low = (a << 16).to(tl.float32, bitcast=True) * (b << 16).to(tl.float32, bitcast=True)
    high = ((a >> 16) << 16).to(tl.float32, bitcast=True) * ((b >> 16) << 16).to(tl.float32, bitcast=True)
    both = _round(low) | (_round(high) << 16)
    tl.store(out + at, both.to(tl.int32, bitcast=True), mask=at < n)


@triton.jit
def _plain(x, y, out, first, n, BLOCK: tl.constexpr):
    at = first + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(y + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + at, (a * b).to(out.dtype.element_ty), mask=at < n)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n, first = x.numel(), 0
    aligned = all(t.data_ptr() % 4 == 0 and t.storage_offset() % 2 == 0 for t in (x, y, out))
    if x.dtype == torch.bfloat16 and n > 1 and aligned:
        first = n // 2 * 2
        pairs = [t.view(-1)[:first].view(torch.int32) for t in (x, y, out)]
        _packed[(triton.cdiv(n // 2, 512),)](*pairs, n // 2, BLOCK=512)
    if first < n:
        _plain[(triton.cdiv(n - first, 1024),)](x, y, out, first, n, BLOCK=1024)
    return out
