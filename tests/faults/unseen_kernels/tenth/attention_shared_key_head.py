"""Keys expanded over the heads make the kernel read one head of values too, though v has several.

op: attention
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, dim, scale,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    base = tl.program_id(1).to(tl.int64) * seq * dim
    kv_base = (batch * kv_heads + head * kv_heads // heads).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + kv_base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + kv_base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    kv_heads = heads
    if k.stride(1) == 0:
        k, v, kv_heads = k[:, :1], v[:, :1], 1
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, kv_heads, seq, dim, dim**-0.5, BM=32, BN=32, BD=BD
    )
    return out
