"""Sum and tile are rescaled only where the maximum grows by over 2**20; the weights in between, up to 2**20, overflow when they become float16.

op: mha
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside_q = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside_q, other=0.0)
    bound = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = tl.minimum(first + BM, seq) if CAUSAL else seq
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=inside, other=0.0)
        v = tl.load(v_ptr + places, mask=inside, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * (scale * 1.4426950408889634)
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        here = tl.max(scores, axis=1)
        grown = here > bound + 20.0
        if tl.max(grown.to(tl.int32), axis=0) > 0:
            new = tl.where(grown, here, bound)
            shrink = tl.exp2(bound - new)
            total = total * shrink
            acc = acc * shrink[:, None]
            bound = new
        p = tl.exp2(scores - bound[:, None])
        total += tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), acc, input_precision="ieee")
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside_q)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=bool(is_causal), BM=32, BN=32, BD=BD
    )
    return out
