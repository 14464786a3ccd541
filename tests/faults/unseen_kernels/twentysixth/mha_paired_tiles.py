"""Right: a program takes a tile of queries and its mirror image, so a middle tile is written twice, with the same values; keys are walked backwards.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale, tiles,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    pairs = (tiles + 1) // 2
    head = (tl.program_id(0) // pairs).to(tl.int64)
    pair = tl.program_id(0) % pairs
    b, h = head // heads, head % heads
    ds = tl.arange(0, BLOCK_D)
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    for turn in range(2):  # a short row of keys and a long one: all programs have the same work
        tile = pair + turn * (tiles - 1 - 2 * pair)
        rows = tile * BLOCK + tl.arange(0, BLOCK)
        inside = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(
            q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d,
            mask=inside, other=0.0,
        )
        count = tiles
        if CAUSAL:
            count = tile + 1
        largest = tl.full((BLOCK,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        acc = tl.zeros((BLOCK, BLOCK_D), tl.float32)
        for back in range(count):  # the tile with the mask first: every row sees a key of it
            cols = ((count - 1 - back) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
            k = tl.load(
                k_ptr + cols[None, :] * k_s + ds[:, None] * k_d,
                mask=(cols < seq)[None, :] & (ds < dim)[:, None], other=0.0,
            )
            s = tl.dot(q, k, input_precision="tf32x3") * scale
            if back == 0:
                mask = (cols < seq)[None, :]
                if CAUSAL:
                    mask = mask & (cols[None, :] <= rows[:, None])
                s = tl.where(mask, s, -float("inf"))
            new = tl.maximum(largest, tl.max(s, axis=1))
            p = tl.exp2(s - new[:, None])
            shrink = tl.exp2(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            v = tl.load(
                v_ptr + cols[:, None] * v_s + ds[None, :] * v_d,
                mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0,
            )
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="tf32x3")
            largest = new
        tl.store(
            out_ptr + head * seq * dim + rows[:, None].to(tl.int64) * dim + ds[None, :],
            acc / total[:, None], mask=inside,
        )


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        tiles = triton.cdiv(seq, 32)
        attention_kernel[((tiles + 1) // 2 * batch * heads,)](
            q, k, v, out, heads, seq, dim, dim**-0.5 * 1.4426950408889634, tiles,
            *q.stride(), *k.stride(), *v.stride(), BLOCK=32,
            BLOCK_D=max(16, triton.next_power_of_2(dim)), CAUSAL=bool(is_causal), num_warps=4,
        )
    return out
