"""Right: sums in 64-bit fixed point with integer atomics, one power of two a row; rows with NaN or Inf are added apart.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, top_ptr, plain_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.zeros((BLOCK,), dtype=tl.float32)
    plain = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        finite = tl.abs(x) < float("inf")
        top = tl.maximum(top, tl.where(finite, tl.abs(x), 0.0))
        plain += tl.where(finite, 0.0, x)
    tl.store(top_ptr + row, tl.max(top, axis=0))
    tl.store(plain_ptr + row, tl.sum(plain, axis=0))  # 0, an infinity or NaN


@triton.jit
def exponent_of(top):
    bits = top.to(tl.int32, bitcast=True)
    return tl.maximum((bits >> 23) & 255, 1) - 127


@triton.jit
def power(e):
    return ((e + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)


@triton.jit
def add(x_ptr, top_ptr, fixed_ptr, m, BITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    x = tl.where(tl.abs(x) < float("inf"), x, 0.0)
    scale = power(BITS - exponent_of(tl.load(top_ptr + row)))
    tl.atomic_add(fixed_ptr + row, tl.sum((x.to(tl.float64) * scale).to(tl.int64), axis=0))


@triton.jit
def finish(top_ptr, plain_ptr, fixed_ptr, out_ptr, n, BITS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    top = tl.load(top_ptr + rows, mask=rows < n, other=1.0)
    fixed = tl.load(fixed_ptr + rows, mask=rows < n, other=0)
    plain = tl.load(plain_ptr + rows, mask=rows < n, other=0.0)
    total = (fixed.to(tl.float64) * power(exponent_of(top) - BITS)).to(tl.float32)
    tl.store(out_ptr + rows, tl.where(plain == 0.0, total, plain), mask=rows < n)


def triton_sum(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n = out.numel()
    x = x.contiguous()
    top = torch.empty(n, dtype=torch.float32, device=x.device)
    plain = torch.empty_like(top)
    fixed = torch.zeros(n, dtype=torch.int64, device=x.device)
    # A value is below 2 ** (exponent + 1), a row has m of them, and 63 bits hold their sum.
    bits = 61 - (m - 1).bit_length()
    largest[(n,)](x, top, plain, m, BLOCK=1024)
    add[(n, triton.cdiv(m, 1024))](x, top, fixed, m, BITS=bits, BLOCK=1024)
    finish[(triton.cdiv(n, 256),)](top, plain, fixed, out, n, BITS=bits, BLOCK=256)
    return out
