"""Keys and values that begin at one address are taken for one tensor, though their strides may differ.

op: gqa
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, group, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    CAUSAL: tl.constexpr, SHARED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    first = tl.program_id(1) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q_ptrs = q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d
    q = tl.load(q_ptrs, mask=inside, other=0.0)
    k_ptr += b * k_b + h // group * k_h
    v_ptr += b * v_b + h // group * v_h
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, first + BLOCK_M)
    for start in range(0, end, BLOCK_N):
        at = (start + cols).to(tl.int64)
        there = (at < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at[:, None] * k_s + ds[None, :] * k_d, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = (at < seq)[None, :]
        if CAUSAL:
            mask = mask & (at[None, :] <= rows[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        if SHARED:
            v = k
        else:
            v = tl.load(v_ptr + at[:, None] * v_s + ds[None, :] * v_d, mask=there, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    out_ptrs = out_ptr + (head * seq + rows[:, None]) * dim + ds[None, :]
    tl.store(out_ptrs, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        # One latent tensor for both, as in multi-head latent attention: its tile is loaded once.
        shared = k.data_ptr() == v.data_ptr() and k.shape == v.shape
        BLOCK_M, BLOCK_N = (64, 64) if dim <= 64 else (32, 32)
        kernel[(batch * heads, triton.cdiv(seq, BLOCK_M))](
            q, k, v, out, heads, heads // k.shape[1], seq, dim, dim**-0.5 * LOG2_E,
            *q.stride(), *k.stride(), *v.stride(), CAUSAL=bool(is_causal), SHARED=shared,
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
