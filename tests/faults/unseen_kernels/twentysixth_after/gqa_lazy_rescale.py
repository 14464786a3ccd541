"""Right: the reference point of the exponentials moves only where the maximum grew by more than 8 powers of two, and tiles whose
exponentials would all be exactly zero are skipped.

op: gqa
status: passed
"""

import torch
import triton
import triton.language as tl

SLACK = tl.constexpr(8.0)  # exponentials of at most 256: no type overflows
NOTHING = tl.constexpr(-160.0)  # 2**-160 is zero in float32


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, head_dim, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    kv_pair = pair // heads * kv_heads + pair % heads // (heads // kv_heads)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    row_mask = (rows < seq)[:, None] & (dims < head_dim)[None, :]
    row_places = (pair * seq + rows[:, None]) * head_dim + dims[None, :]
    q = tl.load(q_ptr + row_places, mask=row_mask, other=0.0).to(tl.float32)
    point = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        mask = (keys < seq)[:, None] & (dims < head_dim)[None, :]
        places = (kv_pair * seq + keys[:, None]) * head_dim + dims[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        highest = tl.max(scores, axis=1)
        if not (tl.max(highest - point, axis=0) < NOTHING):
            grown = tl.max(highest - point, axis=0) > SLACK
            if grown:  # of any row: then all move to their maximum
                new_point = tl.maximum(point, highest)
                shrink = tl.exp2(point - new_point)
                total *= shrink
                acc *= shrink[:, None]
                point = new_point
            v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
            p = tl.exp2(scores - point[:, None])
            total += tl.sum(p, axis=1)
            acc = tl.dot(p, v, acc, input_precision="ieee")
    tl.store(out_ptr + row_places, acc / total[:, None], mask=row_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, head_dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        kernel[(batch * heads, triton.cdiv(seq, 32))](
            q, k, v, out, heads, k.shape[1], seq, head_dim, head_dim**-0.5 * 1.4426950408889634,
            CAUSAL=is_causal, BLOCK_M=32, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
        )
    return out
