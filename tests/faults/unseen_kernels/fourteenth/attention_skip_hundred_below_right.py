"""A tile of keys whose scores are all 100 below the maximum so far takes no part: its weights are below 1e-43.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        at = base + cols[:, None] * dim + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        top = tl.max(scores, axis=1)
        # NaN among the scores, or an infinity in v, must reach the output: such a tile is not skipped.
        broken = tl.sum(tl.sum((v * 0.0 != 0.0).to(tl.int32), axis=1), axis=0)
        sums = tl.sum(scores, axis=1)
        near = ((top >= largest - 100.0) | (sums != sums)).to(tl.int32)
        if tl.sum(near, axis=0) + broken > 0:
            new = tl.maximum(largest, top)
            shift = tl.where(new == -float("inf"), 0.0, new)
            p = tl.exp(scores - shift[:, None])
            shrink = tl.exp(largest - shift)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
            largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim))
    )
    return out
