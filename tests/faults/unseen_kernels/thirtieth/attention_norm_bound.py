"""In place of a running maximum there is a bound, |q| times the largest |k|: with one long key all weights may become zero.

op: attention
status: failed
cause: range
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(k_ptr, norm_ptr, seq, D, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    ds = tl.arange(0, BLOCK_D)
    largest = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        at = (head * seq + cols[:, None]) * D + ds[None, :]
        k = tl.load(k_ptr + at, mask=(cols < seq)[:, None] & (ds < D)[None, :], other=0.0)
        k = k.to(tl.float32)
        largest = tl.maximum(largest, tl.sum(k * k, axis=1))
    tl.store(norm_ptr + head, tl.sqrt(tl.max(largest, axis=0)))


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, norm_ptr, out_ptr, seq, D, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < D)[None, :]
    q_at = (head * seq + rows[:, None]) * D + ds[None, :]
    q = tl.load(q_ptr + q_at, mask=inside, other=0.0)
    wide = q.to(tl.float32)
    # Cauchy and Schwarz: no score is larger. So nothing is rescaled, and tiles need no order.
    bound = tl.sqrt(tl.sum(wide * wide, axis=1)) * tl.load(norm_ptr + head) * scale
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        at = (head * seq + cols[:, None]) * D + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < D)[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        s = tl.dot(q, tl.trans(k), input_precision="tf32x3") * scale
        # The weights are small numbers: they stay in float32.
        p = tl.where((cols < seq)[None, :], tl.exp2(s - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc = tl.dot(p, v, acc, input_precision="tf32x3")
    tl.store(out_ptr + q_at, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, D = q.shape
    if q.numel() == 0:
        return out
    BLOCK_D = max(16, triton.next_power_of_2(D))
    norms = torch.empty(batch * heads, dtype=torch.float32, device=q.device)
    norm_kernel[(batch * heads,)](k, norms, seq, D, BLOCK_N=32, BLOCK_D=BLOCK_D)
    BLOCK = 64 if BLOCK_D <= 64 else 32
    attention_kernel[(triton.cdiv(seq, BLOCK), batch * heads)](
        q, k, v, norms, out, seq, D, 1.4426950408889634 / math.sqrt(D),
        BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_D=BLOCK_D,
    )
    return out
