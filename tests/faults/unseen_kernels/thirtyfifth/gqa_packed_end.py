"""The heads of a group are rows of one tile of 16; the causal loop ends at (tile + 1) * 16 // group rounded down, harmless
until a group has more than 16 heads: then a tile ends inside a position and its key is missed.

op: gqa
status: failed
cause: loop bound
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(q, k, v, out, heads, kv_heads, seq, dim, scale, qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd, GROUP: tl.constexpr, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    tile = tl.program_id(0)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv = (tl.program_id(1) % kv_heads).to(tl.int64)
    rows = tile * M + tl.arange(0, M)
    pos = rows // GROUP
    head = kv * GROUP + rows % GROUP
    ds = tl.arange(0, D)
    live = (pos < seq)[:, None] & (ds < dim)[None, :]
    x = tl.load(q + batch * qb + head[:, None] * qh + pos.to(tl.int64)[:, None] * qs + ds[None, :] * qd, mask=live, other=0.0).to(tl.float32)
    top = tl.full((M,), -1e38, tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * M // GROUP)
    for start in range(0, end, N):
        keys = start + tl.arange(0, N)
        inside = (keys < seq)[:, None] & (ds < dim)[None, :]
        y = tl.load(k + batch * kb + kv * kh + keys.to(tl.int64)[:, None] * ks + ds[None, :] * kd, mask=inside, other=0.0).to(tl.float32)
        z = tl.load(v + batch * vb + kv * vh + keys.to(tl.int64)[:, None] * vs + ds[None, :] * vd, mask=inside, other=0.0).to(tl.float32)
        s = tl.dot(x, tl.trans(y), input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= pos[:, None])
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(top - new)
        total = total * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p, z, input_precision="ieee")
        top = new
    acc = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    at = ((batch * heads + head[:, None]) * seq + pos[:, None]) * dim + ds[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=live)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        group = heads // kv_heads
        _k[(triton.cdiv(seq * group, 16), batch * kv_heads)](q, k, v, out, heads, kv_heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(), GROUP=group, CAUSAL=bool(is_causal), M=16, N=16, D=max(16, triton.next_power_of_2(dim)))
    return out
