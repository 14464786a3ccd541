"""Nothing wrong: a program finds its head by a product with 1 / tiles, and corrects it by one.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, tiles, per_tile,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pid = tl.program_id(0)
    head = (pid.to(tl.float32) * per_tile).to(tl.int32)  # no division of integers
    head += ((head + 1) * tiles <= pid).to(tl.int32)
    head -= (head * tiles > pid).to(tl.int32)
    rows = (pid - head * tiles) * BM + tl.arange(0, BM)
    base = head.to(tl.int64) * seq * dim
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0).to(tl.float32) * scale
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        kv = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + kv, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + kv, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    tiles = triton.cdiv(seq, 16)
    attention_kernel[(batch * heads * tiles,)](
        q, k, v, out, seq, dim, dim**-0.5, tiles, 1.0 / tiles,
        BM=16, BN=64, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
