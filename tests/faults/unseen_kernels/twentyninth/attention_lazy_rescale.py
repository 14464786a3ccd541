"""Sums are scaled down only where a tile's maximum leaps above the maximum so far, not above the reference: a steady rise overflows.

op: attention
status: failed
cause: online
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def wide(x):
    """bfloat16 as float32: exact, and older devices and the interpreter have no product of it."""
    if x.dtype == tl.bfloat16:
        x = x.to(tl.float32)
    return x


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, LEAP: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = wide(tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0))
    reference = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        here = start + cols
        at = base + here[:, None] * dim + ds[None, :]
        mask = (here < seq)[:, None] & (ds < dim)[None, :]
        k = wide(tl.load(k_ptr + at, mask=mask, other=0.0))
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((here < seq)[None, :], s, -float("inf"))
        peak = tl.max(s, axis=1)
        # The result does not depend on the reference: a new one only where exp2 would grow large.
        leaps = peak > largest + LEAP
        if tl.max(leaps.to(tl.int32), axis=0) > 0:
            new = tl.where(leaps, peak, reference)
            shrink = tl.exp2(reference - new)
            total = total * shrink
            acc = acc * shrink[:, None]
            reference = new
        largest = tl.maximum(largest, peak)
        p = tl.exp2(s - reference[:, None])
        total += tl.sum(p, axis=1)
        v = wide(tl.load(v_ptr + at, mask=mask, other=0.0))
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    if not q.numel():
        return out
    batch, heads, seq, dim = q.shape
    attention_kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, seq, dim, LOG2_E / dim**0.5,
        BLOCK_M=64, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)), LEAP=8.0, num_stages=1,
    )
    return out
