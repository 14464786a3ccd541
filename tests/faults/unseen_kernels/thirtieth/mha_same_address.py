"""k and v at one address count as one tensor, whatever their strides: v may be k's first head, expanded.

op: mha
status: failed
cause: alias
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd, ob, oh, os, od,
    heads, seq, dim, scale,
    CAUSAL: tl.constexpr, SHARED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = (tl.program_id(0) % heads).to(tl.int64)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    inside = (rows[:, None] < seq) & (d[None, :] < dim)
    q_at = q_ptr + batch * qb + head * qh + rows[:, None].to(tl.int64) * qs + d[None, :] * qd
    q = tl.load(q_at, mask=inside, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        here = (cols[:, None] < seq) & (d[None, :] < dim)
        k_at = k_ptr + batch * kb + head * kh + cols[:, None].to(tl.int64) * ks + d[None, :] * kd
        k = tl.load(k_at, mask=here, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = cols[None, :] < seq
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp2(scores - new[:, None])
        grow = tl.exp2(top - new)
        total = total * grow + tl.sum(p, axis=1)
        if SHARED:
            v = k
        else:
            v_at = v_ptr + batch * vb + head * vh + cols[:, None].to(tl.int64) * vs
            v = tl.load(v_at + d[None, :] * vd, mask=here, other=0.0)
        acc = acc * grow[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = new
    out_at = out_ptr + batch * ob + head * oh + rows[:, None].to(tl.int64) * os + d[None, :] * od
    tl.store(out_at, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    # Tied keys and values are in shared memory already.
    shared = k.data_ptr() == v.data_ptr()
    kernel[(batch * heads, triton.cdiv(seq, 64))](
        q, k, v, out,
        *q.stride(), *k.stride(), *v.stride(), *out.stride(),
        heads, seq, dim, math.log2(math.e) / math.sqrt(dim),
        CAUSAL=bool(is_causal), SHARED=shared,
        BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )  # fmt: skip
    return out
