"""The sums are rescaled only where the maximum rises by over 2**20: float32 holds that, a float16 weight does not.

op: attention
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, scale, d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, LATE: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * d
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    at = rows[:, None] * d + dims[None, :]
    inside = (rows < seq)[:, None] & (dims < d)[None, :]
    q = tl.load(q_ptr + base + at, mask=inside, other=0.0)
    peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        mask = (keys < seq)[:, None] & (dims < d)[None, :]
        there = base + keys[:, None] * d + dims[None, :]
        k = tl.load(k_ptr + there, mask=mask, other=0.0)
        v = tl.load(v_ptr + there, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < seq)[None, :], scores, -float("inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        # A weight may be past 1 for a while: the division at the end takes it out again.
        base_now = tl.where(higher - peak > LATE, higher, peak)
        factor = tl.exp2(peak - base_now)
        weights = tl.exp2(scores - base_now[:, None])
        total = total * factor + tl.sum(weights, axis=1)
        acc = acc * factor[:, None]
        acc = tl.dot(weights.to(v.dtype), v, acc, input_precision="ieee")
        peak = base_now
    tl.store(out_ptr + base + at, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, d = q.shape
    if out.numel():
        BLOCK_M = 32
        scale = d**-0.5 * 1.4426950408889634
        kernel[(triton.cdiv(seq, BLOCK_M), batch * heads)](
            q, k, v, out, seq, scale, d, BLOCK_M=BLOCK_M, BLOCK_N=32,
            BLOCK_D=max(16, triton.next_power_of_2(d)), LATE=20.0,
        )
    return out
