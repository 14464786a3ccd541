"""float32 is split into two limbs of float16 after one scale for the whole matrix: rows far smaller than the largest lose their digits.

op: matmul
status: failed
cause: limbs
"""

import torch
import triton
import triton.language as tl


@triton.jit
def largest_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0)
    tl.atomic_max(out_ptr, tl.max(tl.abs(x).to(tl.int32, bitcast=True), axis=0))


@triton.jit
def power(bits):
    """Powers of two: one that brings the largest number to 1 to 2, and its inverse."""
    e = tl.minimum(tl.maximum(bits >> 23, 1), 253)
    return ((254 - e) << 23).to(tl.float32, bitcast=True), (e << 23).to(tl.float32, bitcast=True)


@triton.jit
def limbs(x, scale):
    x = x * scale
    high = x.to(tl.float16)
    return high, ((x - high.to(tl.float32)) * 2048.0).to(tl.float16)


@triton.jit
def wide(x):
    """bfloat16 as float32: exact, and older devices and the interpreter have no product of it."""
    if x.dtype == tl.bfloat16:
        x = x.to(tl.float32)
    return x


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, largest_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, LIMBS: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    low = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    if LIMBS:
        a_scale, a_back = power(tl.load(largest_ptr))
        b_scale, b_back = power(tl.load(largest_ptr + 1))
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < m)[:, None] & (ks < k)[None, :]
        b_mask = (ks < k)[:, None] & (cols < n)[None, :]
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None].to(tl.int64) * n + cols[None, :], mask=b_mask, other=0.0)
        if LIMBS:
            a_high, a_low = limbs(a, a_scale)
            b_high, b_low = limbs(b, b_scale)
            acc = tl.dot(a_high, b_high, acc)
            low = tl.dot(a_high, b_low, low)
            low = tl.dot(a_low, b_high, low)
        else:
            acc = tl.dot(wide(a), wide(b), acc, input_precision="ieee")
    if LIMBS:
        acc = (acc + low / 2048.0) * a_back * b_back
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :]
    )


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    split = a.dtype == torch.float32
    largest = torch.zeros(2, dtype=torch.int32, device=a.device)
    if split:
        for x, place in ((a, largest), (b, largest[1:])):
            if x.numel():
                largest_kernel[(triton.cdiv(x.numel(), 8192),)](x, place, x.numel(), BLOCK=8192)
    matmul_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        a, b, out, largest, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, LIMBS=split
    )
    return out
