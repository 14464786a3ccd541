"""Queries and keys that are neighbours in one projection are taken for parts of it, and so is v, whose place is never looked at: a v of its own is ignored.

op: mha
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, sb, sh, ss, ob, oh, os, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pair = tl.program_id(0)
    batch, head = (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)
    base = batch * sb + head * sh
    first = tl.program_id(1) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * ss + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, first + BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * ss + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
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
    at = batch * ob + head * oh + rows[:, None] * os + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


def is_packed(q, k):
    """q and k are two of the three parts of [batch, seq, 3, heads, dim]."""
    batch, heads, seq, dim = q.shape
    apart = k.data_ptr() - q.data_ptr() == heads * dim * q.element_size()
    return apart and q.stride() == k.stride() == (seq * 3 * heads * dim, dim, 3 * heads * dim, 1)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    if is_packed(q, k):
        # No copies: the three parts have the same strides.
        v = q.as_strided(q.shape, q.stride(), q.storage_offset() + 2 * heads * dim)
    else:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    sb, sh, ss, _ = q.stride()
    ob, oh, os, _ = out.stride()
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, seq, dim, sb, sh, ss, ob, oh, os, dim**-0.5, CAUSAL=is_causal,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
