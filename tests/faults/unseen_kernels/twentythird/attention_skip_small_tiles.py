"""A tile of keys is skipped where each of its weights is below the dtype's rounding: many of them together are not.

op: attention
status: failed
cause: skipped
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    SKIP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q_ptr += b * q_b + h * q_h
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    q = tl.load(q_ptr + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = tl.load(
            k_ptr + cols[None, :].to(tl.int64) * k_s + ds[:, None] * k_d,
            mask=(cols < seq)[None, :] & (ds < dim)[:, None],
            other=0.0,
        )
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
        top = tl.max(s, axis=1)
        # Weights that round to nothing beside the largest need no exp, no v and no second product.
        rise = tl.where(rows < seq, top - largest, -float("inf"))
        if tl.max(rise, axis=0) > -SKIP:
            new = tl.maximum(largest, top)
            shrink = tl.exp(largest - new)
            p = tl.exp(s - new[:, None])
            total = total * shrink + tl.sum(p, axis=1)
            v = tl.load(
                v_ptr + cols[:, None].to(tl.int64) * v_s + ds[None, :] * v_d,
                mask=(cols < seq)[:, None] & (ds < dim)[None, :],
                other=0.0,
            )
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
            largest = new
    places = head * seq * dim + rows[:, None].to(tl.int64) * dim + ds[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    if dim > 256:
        raise ValueError(f"head_dim is {dim}: at most 256")
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        # e^-8.5 < 2^-12 and e^-17 < 2^-24: half a unit in the last place of the largest weight.
        skip = 17.0 if q.dtype == torch.float32 else 8.5
        kernel[(triton.cdiv(seq, 32), batch * heads)](
            q, k, v, out, heads, seq, dim, 1 / math.sqrt(dim),
            *q.stride(), *k.stride(), *v.stride(),
            SKIP=skip, BLOCK_M=32, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
