"""Right: a program has tile i and the tile as far from the end, keys go from the last to the first; the middle tile may be done twice.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    pair, flat = tl.program_id(1), tl.program_id(0)
    batch, head = (flat // heads).to(tl.int64), (flat % heads).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    tiles = tl.cdiv(seq, BLOCK_M)
    for which in range(2):  # a short and a long row of tiles: every program has the same work
        tile = pair + which * (tiles - 1 - 2 * pair)
        rows = (tile * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        at = (rows[:, None] < seq) & (d[None] < dim)
        q = tl.load(q_ptr + batch * qb + head * qh + rows[:, None] * qs + d[None] * qd, mask=at, other=0.0)
        top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        end = tl.minimum(seq, (tile + 1) * BLOCK_M) if CAUSAL else seq
        steps = tl.cdiv(end, BLOCK_N)
        for step in range(steps):
            keys = ((steps - 1 - step) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
            mask = (keys[:, None] < seq) & (d[None] < dim)
            k = tl.load(k_ptr + batch * kb + head * kh + keys[:, None] * ks + d[None] * kd, mask=mask, other=0.0)
            v = tl.load(v_ptr + batch * vb + head * vh + keys[:, None] * vs + d[None] * vd, mask=mask, other=0.0)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            visible = (keys[None] < seq) & ((keys[None] <= rows[:, None]) | (not CAUSAL))
            scores = tl.where(visible, scores, -float("inf"))
            new = tl.maximum(top, tl.max(scores, axis=1))
            safe = tl.where(new == -float("inf"), 0.0, new)  # the last keys may all be hidden
            p = tl.exp2(scores - safe[:, None])
            old = tl.exp2(top - safe)
            total = total * old + tl.sum(p, axis=1)
            acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="ieee")
            top = new
        out = out_ptr + (flat.to(tl.int64) * seq + rows[:, None]) * dim + d[None]
        tl.store(out, acc / total[:, None], mask=at)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    pairs = triton.cdiv(triton.cdiv(seq, 32), 2)
    attend[(batch * heads, pairs)](
        q, k, v, out, heads, seq, dim, 1.4426950408889634 / dim**0.5,
        *q.stride(), *k.stride(), *v.stride(), CAUSAL=bool(is_causal),
        BLOCK_M=32, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )  # fmt: skip
    return out
