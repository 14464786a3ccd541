"""The accumulator is scaled to a new maximum as soon as that of any row of a tile grew by more than 8.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    at_q = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + at_q, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        # Scaling the accumulator is rarely worth it: an old maximum serves while the new is close.
        grown = (new - largest > 8.0).to(tl.int32)
        if tl.max(grown, axis=0) > 0:
            safe = tl.where(new == -float("inf"), 0.0, new)
            shrink = tl.exp(largest - safe)
            total = total * shrink
            acc = acc * shrink[:, None]
            largest = new
        p = tl.exp(scores - tl.where(largest == -float("inf"), 0.0, largest)[:, None])
        total += tl.sum(p, axis=1)
        acc += tl.dot(p, v, input_precision="ieee")
    tl.store(out_ptr + at_q, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
