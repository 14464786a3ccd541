"""With the mask and at least 16 tiles of queries a program takes a short tile and a long one; of an odd number of tiles the middle one is never written.

op: mha
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, tiles, CAUSAL: tl.constexpr, PARTS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    ds = tl.arange(0, BD)
    for part in range(PARTS):
        tile = tl.program_id(1) + part * (tiles - 1 - 2 * tl.program_id(1))
        rows = tile * BM + tl.arange(0, BM)
        inside = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        end = seq
        if CAUSAL:
            end = min(seq, tile * BM + BM)
        for start in range(0, end, BN):
            cols = start + tl.arange(0, BN)
            mask = (cols < seq)[:, None] & (ds < dim)[None, :]
            at = base + cols[:, None] * dim + ds[None, :]
            k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
            v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
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
    tiles = triton.cdiv(seq, 64)
    parts = 2 if is_causal and tiles >= 16 else 1  # the same work for all, where there is enough of it
    out = torch.empty_like(q)
    kernel[(batch * heads, tiles // parts)](
        q, k, v, out, seq, dim, dim**-0.5, tiles, CAUSAL=is_causal, PARTS=parts,
        BM=64, BN=64, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
