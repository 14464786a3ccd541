"""Keys and values with dense rows are read in place, a batch being key heads times the stride of one: wrong for some heads of a larger cache.

op: gqa
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, dim, k_stride, v_stride, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * seq * dim
    kv = ((pid // heads) * kv_heads + (pid % heads) // (heads // kv_heads)).to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + kv * k_stride + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + kv * v_stride + at, mask=mask, other=0.0).to(tl.float32)
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


def dense_rows(x):
    """x itself where only the heads lie apart, as in a cache longer than the sequence; else a copy."""
    return x if x.stride(3) == 1 and x.stride(2) == x.shape[3] else x.contiguous()


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), dense_rows(k), dense_rows(v)
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, k.shape[1], seq, dim, k.stride(1), v.stride(1), dim**-0.5, CAUSAL=is_causal,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
