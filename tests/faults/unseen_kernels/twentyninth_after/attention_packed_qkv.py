"""q, k and v with the same strides in one memory are taken for parts of one projection at equal distances; v is never looked at: wrong where v is k, or where another part lies between.

op: attention
status: failed
cause: alias
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, out_ptr, k_distance, v_distance, heads, seq, d, scale, s0, s1, s2, s3, o0, o1, o2,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    batch = tl.program_id(1).to(tl.int64) // heads
    head = tl.program_id(1).to(tl.int64) % heads
    ds = tl.arange(0, BD)
    q_mask = (rows < seq)[:, None] & (ds < d)[None, :]
    base = q_ptr + batch * s0 + head * s1
    q = tl.load(base + rows[:, None].to(tl.int64) * s2 + ds[None, :] * s3, mask=q_mask, other=0.0)
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < d)[None, :]
        at = base + cols[:, None].to(tl.int64) * s2 + ds[None, :] * s3
        k = tl.load(at + k_distance, mask=mask, other=0.0)
        v = tl.load(at + v_distance, mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
        new = tl.maximum(peak, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(peak - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        peak = new
    at = batch * o0 + head * o1 + rows[:, None].to(tl.int64) * o2 + ds[None, :]
    tl.store(out_ptr + at, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=q_mask)


def is_packed(q, k, v):
    """Return whether they are views of one projection, as a split or an unbind makes them."""
    memory = q.untyped_storage().data_ptr()
    if any(t.untyped_storage().data_ptr() != memory or t.stride() != q.stride() for t in (k, v)):
        return False
    # [batch, seq, 3, heads, d], or for each head [batch, seq, heads, 3, d]
    distance = k.storage_offset() - q.storage_offset()
    return distance > 0


def triton_attention(q, k, v):
    batch, heads, seq, d = q.shape
    if not is_packed(q, k, v):
        packed = torch.empty((3, *q.shape), dtype=q.dtype, device=q.device)
        for part, t in zip(packed, (q, k, v), strict=True):
            part.copy_(t)
        q, k, v = packed
    distance = k.storage_offset() - q.storage_offset()
    out = torch.empty((batch, heads, seq, d), dtype=q.dtype, device=q.device)
    if out.numel():
        kernel[(triton.cdiv(seq, 32), batch * heads)](
            q, out, distance, 2 * distance, heads, seq, d, 1 / math.sqrt(d), *q.stride(),
            *out.stride()[:3], BM=32, BN=64, BD=max(16, triton.next_power_of_2(d)),
        )
    return out
