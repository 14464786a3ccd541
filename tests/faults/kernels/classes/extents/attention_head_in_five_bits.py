"""A program's number holds its head in five bits, so there are 32 heads at most.

op: attention
status: failed
cause: truncated_extent
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    SLOTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    packed = tl.program_id(1)
    base = (packed // SLOTS * heads + packed % SLOTS).to(tl.int64) * seq * dim
    if packed % SLOTS >= heads:
        return
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    reference = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        largest = tl.max(scores, axis=1)
        moved = largest > reference + 8.0
        new = tl.where(moved, largest, reference)
        p = tl.exp(scores - new[:, None])
        shrink = tl.where(moved, tl.exp(reference - new), 1.0)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
        reference = new
    places = base + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    slots = 32
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 32), batch * slots)](
        q, k, v, out, heads, seq, dim, dim**-0.5, SLOTS=slots,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
