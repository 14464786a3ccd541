"""Nothing wrong: sum and tile are rescaled only where the maximum grows by over 2**8; the weights, at most 256, stay in float32.

op: mha
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n_tiles, n_heads, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    for work in range(tl.program_id(0), n_tiles * n_heads, tl.num_programs(0)):
        tile = n_tiles - 1 - work // n_heads  # the longest first
        base = (work % n_heads).to(tl.int64) * seq * dim
        rows = tile * BM + tl.arange(0, BM)
        ds = tl.arange(0, BD)
        inside_q = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside_q, other=0.0)
        bound = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        end = tl.minimum(tile * BM + BM, seq) if CAUSAL else seq
        for start in range(0, end, BN):
            cols = start + tl.arange(0, BN)
            inside = (cols < seq)[:, None] & (ds < dim)[None, :]
            places = base + cols[:, None] * dim + ds[None, :]
            k = tl.load(k_ptr + places, mask=inside, other=0.0)
            v = tl.load(v_ptr + places, mask=inside, other=0.0).to(tl.float32)
            scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * (scale * 1.4426950408889634)
            is_visible = (cols < seq)[None, :]
            if CAUSAL:
                is_visible = is_visible & (cols[None, :] <= rows[:, None])
            scores = tl.where(is_visible, scores, -float("inf"))
            here = tl.max(scores, axis=1)
            grown = here > bound + 8.0
            if tl.max(grown.to(tl.int32), axis=0) > 0:
                new = tl.where(grown, here, bound)
                shrink = tl.exp2(bound - new)
                total = total * shrink
                acc = acc * shrink[:, None]
                bound = new
            p = tl.exp2(scores - bound[:, None])
            total += tl.sum(p, axis=1)
            acc = tl.dot(p, v, acc, input_precision="ieee")
        places = base + rows[:, None] * dim + ds[None, :]
        tl.store(out_ptr + places, acc / total[:, None], mask=inside_q)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    n_tiles = triton.cdiv(seq, 32)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(min(24, n_tiles * batch * heads),)](
        q, k, v, out, n_tiles, batch * heads, seq, dim, dim**-0.5, CAUSAL=bool(is_causal),
        BM=32, BN=32, BD=BD,
    )
    return out
