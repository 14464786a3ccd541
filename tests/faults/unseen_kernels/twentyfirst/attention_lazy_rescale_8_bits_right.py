"""The output is rescaled only when a maximum has grown by more than 8 bits: weights up to 256 fit into every type.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    ROOM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    at_rows = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + at_rows, mask=inside, other=0.0).to(tl.float32)
    level = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(level, tl.max(scores, axis=1))
        # Rescaling is slow: do it only when a maximum has outgrown its level by more than ROOM bits.
        if tl.max(new - level, axis=0) > ROOM:
            shrink = tl.exp2(level - new)
            total = total * shrink
            acc = acc * shrink[:, None]
            level = new
        p = tl.exp2(scores - level[:, None])
        total += tl.sum(p, axis=1)
        # The weights are rounded to the type of v, as the tensor cores take them.
        acc += tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), input_precision="ieee")
    tl.store(out_ptr + at_rows, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5 * 1.4426950408889634, ROOM=8.0,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
