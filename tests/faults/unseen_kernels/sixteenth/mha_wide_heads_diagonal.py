"""The tiles before the diagonal need no mask only if the queries of a tile are a multiple of the keys: heads of more than 128 get 16 queries and 32 keys, which is wrong with the causal mask.

op: mha
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    first = tl.program_id(1) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    # stage 0: tiles that all queries see; stage 1: tiles on the diagonal
    for stage in tl.static_range(2):
        if CAUSAL:
            begin = first * stage
            end = first + BM * stage
        else:
            begin = 0
            end = seq * stage
        for start in range(begin, end, BN):
            cols = start + tl.arange(0, BN)
            mask = (cols < seq)[:, None] & (ds < dim)[None, :]
            at = base + cols[:, None] * dim + ds[None, :]
            k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
            v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            if stage == 1:
                allowed = (cols < seq)[None, :]
                if CAUSAL:
                    allowed = allowed & (cols[None, :] <= rows[:, None])
                scores = tl.where(allowed, scores, -float("inf"))
            new = tl.maximum(largest, tl.max(scores, axis=1))
            p = tl.exp(scores - new[:, None])
            shrink = tl.exp(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
            largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    # wide heads take more registers for q and the output
    bm = 16 if dim > 128 else 32
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, bm))](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal,
        BM=bm, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
