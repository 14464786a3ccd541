"""A tile of keys is skipped where each of its weights is below the rounding of the dtype: thousands of them add up.

op: attention
status: failed
cause: skipping
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    LEAST: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q_ptrs = q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d
    q = tl.load(q_ptrs, mask=inside, other=0.0)
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        at = (start + cols).to(tl.int64)
        k = tl.load(
            k_ptr + at[None, :] * k_s + ds[:, None] * k_d,
            mask=(at < seq)[None, :] & (ds < dim)[:, None], other=0.0,
        )
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where((at < seq)[None, :], s, -float("inf"))
        peak = tl.max(s, axis=1)
        # Weights below half a unit in the last place of the output don't change it:
        # where no query has a larger one in this tile, neither v nor the second product is needed.
        heaviest = tl.max(tl.where(rows < seq, peak - largest, -float("inf")), axis=0)
        if heaviest > LEAST:
            new = tl.maximum(largest, peak)
            p = tl.exp2(s - new[:, None])
            shrink = tl.exp2(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            v = tl.load(
                v_ptr + at[:, None] * v_s + ds[None, :] * v_d,
                mask=(at < seq)[:, None] & (ds < dim)[None, :], other=0.0,
            )
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
            largest = new
    out_ptrs = out_ptr + (head * seq + rows[:, None]) * dim + ds[None, :]
    tl.store(out_ptrs, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        least = {torch.float16: -12.0, torch.bfloat16: -9.0, torch.float32: -25.0}[q.dtype]
        BLOCK_M, BLOCK_N = (64, 64) if dim <= 128 else (32, 32)
        kernel[(batch * heads, triton.cdiv(seq, BLOCK_M))](
            q, k, v, out, heads, seq, dim, dim**-0.5 * LOG2_E, *q.stride(), *k.stride(), *v.stride(),
            LEAST=least, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
