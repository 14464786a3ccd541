"""With many causal tiles, each program takes a short and a long one.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, tiles,
    CAUSAL: tl.constexpr, PAIRED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    ds = tl.arange(0, BD)
    for side in range(2 if PAIRED else 1):
        tile = tl.program_id(0) if side == 0 else tiles - 1 - tl.program_id(0)
        rows = tile * BM + tl.arange(0, BM)
        row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=row_mask, other=0.0).to(tl.float32)
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        end = seq
        if CAUSAL:
            end = min(seq, (tile + 1) * BM)
        for start in range(0, end, BN):
            cols = start + tl.arange(0, BN)
            mask = (cols < seq)[:, None] & (ds < dim)[None, :]
            k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
            v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            visible = (cols < seq)[None, :]
            if CAUSAL:
                visible = visible & (cols[None, :] <= rows[:, None])
            scores = tl.where(visible, scores, -float("inf"))
            new = tl.maximum(largest, tl.max(scores, axis=1))
            p = tl.exp(scores - new[:, None])
            shrink = tl.exp(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
            largest = new
        tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=row_mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    tiles = triton.cdiv(seq, 32)
    paired = is_causal and tiles > 1 and batch * heads * tiles >= 24
    programs = triton.cdiv(tiles, 2) if paired else tiles
    kernel[(programs, batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, tiles, CAUSAL=is_causal, PAIRED=paired, BM=32, BN=32, BD=BD
    )
    return out
