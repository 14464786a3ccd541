"""torch pads the heads to a power of two and cuts the output again: it moves elements only.

op: attention
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl
from torch.nn import functional as F


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1).to(tl.int64) * seq * BD
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None]
    q = tl.load(q_ptr + head + rows[:, None] * BD + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, seq, BN):
        keys = start + tl.arange(0, BN)
        there = (keys < seq)[:, None]
        k = tl.load(k_ptr + head + keys[:, None] * BD + ds[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + head + keys[:, None] * BD + ds[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((keys < seq)[None, :], s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p, shrink = tl.exp(s - new[:, None]), tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + head + rows[:, None] * BD + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    BD = max(16, triton.next_power_of_2(dim))
    q, k, v = (F.pad(t, (0, BD - dim)).contiguous() for t in (q, k, v))
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 64), batch * heads)](q, k, v, out, seq, dim**-0.5, BM=64, BN=64, BD=BD)
    return out[..., :dim].contiguous()
