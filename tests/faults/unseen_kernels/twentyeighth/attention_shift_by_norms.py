"""Scores are shifted by a bound from the norms, at most 64, not by their maximum: where all scores of a row are far below zero, every weight is zero.

op: attention
status: failed
cause: range
"""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(k_ptr, norm_ptr, heads, seq, dim, k_b, k_h, k_s, k_d, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    """The largest norm of a head's keys."""
    head = tl.program_id(0).to(tl.int64)
    k_ptr += head // heads * k_b + head % heads * k_h
    ds = tl.arange(0, BLOCK_D)
    largest = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + cols[:, None] * k_s + ds[None, :] * k_d, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.sum(k * k, axis=1))
    tl.store(norm_ptr + head, tl.sqrt(tl.max(largest, axis=0)))


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, norm_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    wide = q.to(tl.float32)
    # |score| <= |q| * |k|, so no maximum is needed. Past 64 the bound is loose: 64 leaves room above and below.
    bound = tl.sqrt(tl.sum(wide * wide, axis=1)) * tl.load(norm_ptr + head) * scale
    shift = tl.minimum(bound, 64.0)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + b * k_b + h * k_h + cols[:, None] * k_s + ds[None, :] * k_d, mask=mask, other=0.0)
        v = tl.load(v_ptr + b * v_b + h * v_h + cols[:, None] * v_s + ds[None, :] * v_d, mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        p = tl.where((cols < seq)[None, :], tl.exp(s - shift[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc = tl.dot(p, v.to(tl.float32), acc, input_precision="tf32x3")
    tl.store(out_ptr + head * seq * dim + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_D = max(16, triton.next_power_of_2(dim))
        norms = torch.empty(batch * heads, dtype=torch.float32, device=q.device)
        norm_kernel[(batch * heads,)](k, norms, heads, seq, dim, *k.stride(), BLOCK_N=64, BLOCK_D=BLOCK_D)
        attention_kernel[(batch * heads, triton.cdiv(seq, 64))](
            q, k, v, norms, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
            BLOCK_M=64, BLOCK_N=32, BLOCK_D=BLOCK_D, num_stages=1 if dim > 128 else 3,
        )
    return out
