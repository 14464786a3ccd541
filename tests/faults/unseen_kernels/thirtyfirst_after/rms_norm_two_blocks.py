"""Rows of a multiple of 1024 are taken as a large and a small power of two; of three powers one is lost.

op: rms_norm
status: failed
cause: blocks
"""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_kernel(x_ptr, w_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + base + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + cols, x * scale * w, mask=mask)


@triton.jit
def two_blocks_kernel(x_ptr, w_ptr, out_ptr, m, eps, HEAD: tl.constexpr, TAIL: tl.constexpr):
    """Hold the whole row in registers, without a mask: 5120 is 4096 and 1024."""
    base = tl.program_id(0).to(tl.int64) * m
    head = tl.arange(0, HEAD)
    tail = m - TAIL + tl.arange(0, TAIL)
    a = tl.load(x_ptr + base + head).to(tl.float32)
    b = tl.load(x_ptr + base + tail).to(tl.float32)
    scale = 1.0 / tl.sqrt((tl.sum(a * a, axis=0) + tl.sum(b * b, axis=0)) / m + eps)
    tl.store(out_ptr + base + head, a * scale * tl.load(w_ptr + head).to(tl.float32))
    tl.store(out_ptr + base + tail, b * scale * tl.load(w_ptr + tail).to(tl.float32))


def split(m):
    """Return the largest and the smallest power of two in a model's width."""
    return 1 << (m.bit_length() - 1), m & -m


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    n_rows = x.numel() // m
    head, tail = split(m)
    if 2048 < m <= 16384 and m % 1024 == 0 and head != m:
        two_blocks_kernel[(n_rows,)](x, weight, out, m, eps, HEAD=head, TAIL=tail, num_warps=8)
    else:
        BLOCK = min(triton.next_power_of_2(m), 4096)
        masked_kernel[(n_rows,)](x, weight, out, m, eps, BLOCK=BLOCK)
    return out
