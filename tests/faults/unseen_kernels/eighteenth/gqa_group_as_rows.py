"""A group of four or more heads with few tokens is one tile of head-major rows, but the causal mask takes the row divided by the group for the position: two to eight tokens with a causal mask are wrong.

op: gqa
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, count, seq, dim, group, scale,
    CAUSAL: tl.constexpr, PACKED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0)
    # Packed: the group's heads lie behind one another in q, count = group * seq rows for one head of k.
    base = head.to(tl.int64) * count * dim
    if PACKED:
        kv = head.to(tl.int64) * seq * dim
    else:
        kv = (head // group).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    if PACKED:
        position = rows // group
    else:
        position = rows
    ds = tl.arange(0, BD)
    inside = (rows < count)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = kv + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= position[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    group = heads // k.shape[1]
    out = torch.empty_like(q)
    packed = group >= 4 and group * seq <= 32
    count = group * seq if packed else seq
    programs = batch * (k.shape[1] if packed else heads)
    kernel[(programs, triton.cdiv(count, 32))](
        q, k, v, out, count, seq, dim, group, dim**-0.5, CAUSAL=is_causal, PACKED=packed,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
