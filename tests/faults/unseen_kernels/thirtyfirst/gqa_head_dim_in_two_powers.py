"""A head is split into two powers of two (80 = 64 + 16) to save the padding; of 112 = 64 + 32 + 16 the last 16 are lost.

op: gqa
status: failed
cause: head_dim
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, d, scale,
    CAUSAL: tl.constexpr, BLOCK: tl.constexpr, MAIN: tl.constexpr, REST: tl.constexpr,
):
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    kv = batch * kv_heads + head // (heads // kv_heads)
    q_base = tl.program_id(1).to(tl.int64) * seq * d
    k_base = kv.to(tl.int64) * seq * d
    first = tl.program_id(0) * BLOCK
    rows = first + tl.arange(0, BLOCK)
    main = tl.arange(0, MAIN)
    at = q_base + rows[:, None] * d + main[None, :]
    inside = (rows < seq)[:, None] & (main < d)[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0)
    acc = tl.zeros((BLOCK, MAIN), tl.float32)
    if REST:
        rest = MAIN + tl.arange(0, REST)
        at_rest = q_base + rows[:, None] * d + rest[None, :]
        inside_rest = (rows < seq)[:, None] & (rest < d)[None, :]
        q_rest = tl.load(q_ptr + at_rest, mask=inside_rest, other=0.0)
        acc_rest = tl.zeros((BLOCK, REST), tl.float32)
    peak = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    end = tl.minimum(first + BLOCK, seq) if CAUSAL else seq
    for start in range(0, end, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        there = k_base + keys[:, None] * d + main[None, :]
        mask = (keys < seq)[:, None] & (main < d)[None, :]
        k = tl.load(k_ptr + there, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        if REST:
            there_rest = k_base + keys[:, None] * d + rest[None, :]
            mask_rest = (keys < seq)[:, None] & (rest < d)[None, :]
            k_rest = tl.load(k_ptr + there_rest, mask=mask_rest, other=0.0)
            scores = tl.dot(q_rest, tl.trans(k_rest), scores, input_precision="ieee")
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores * scale, -float("inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        factor = tl.exp2(peak - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * factor + tl.sum(weights, axis=1)
        peak = higher
        v = tl.load(v_ptr + there, mask=mask, other=0.0)
        weights = weights.to(v.dtype)
        acc = tl.dot(weights, v, acc * factor[:, None], input_precision="ieee")
        if REST:
            v_rest = tl.load(v_ptr + there_rest, mask=mask_rest, other=0.0)
            acc_rest = acc_rest * factor[:, None]
            acc_rest = tl.dot(weights, v_rest, acc_rest, input_precision="ieee")
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)
    if REST:
        tl.store(out_ptr + at_rest, acc_rest / total[:, None], mask=inside_rest)


def previous_power_of_2(n):
    return 1 << (n.bit_length() - 1) if n else 0


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    # Without the padding of 80 to 128 or 160 to 256, from a half to two thirds of the products.
    batch, heads, seq, d = q.shape
    out = torch.empty_like(q)
    if out.numel():
        MAIN = max(16, previous_power_of_2(d))
        REST = max(16, previous_power_of_2(d - MAIN)) if d > MAIN else 0
        BLOCK = 32
        kernel[(triton.cdiv(seq, BLOCK), batch * heads)](
            q, k, v, out, heads, k.shape[1], seq, d, d**-0.5 * 1.4426950408889634,
            CAUSAL=bool(is_causal), BLOCK=BLOCK, MAIN=MAIN, REST=REST,
        )
    return out
