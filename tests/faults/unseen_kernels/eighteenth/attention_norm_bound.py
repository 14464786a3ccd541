"""The maximum is bounded by the norms of q and k and only a sum of exactly zero is computed again: about 95 above the true maximum the sum is a few subnormal numbers.

op: attention
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def key_norm(k_ptr, norm_ptr, seq, dim, BN: tl.constexpr, BD: tl.constexpr):
    head = tl.program_id(0)
    ds = tl.arange(0, BD)
    largest = tl.zeros((BN,), dtype=tl.float32)
    for start in range(0, seq, BN):
        rows = start + tl.arange(0, BN)
        at = head.to(tl.int64) * seq * dim + rows[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=(rows < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.sum(k * k, axis=1))
    tl.store(norm_ptr + head, tl.sqrt(tl.max(largest, axis=0)))


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, norm_ptr, seq, dim, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr
):
    head = tl.program_id(0)
    base = head.to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    bound = tl.sqrt(tl.sum(q * q, axis=1)) * tl.load(norm_ptr + head) * scale
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    # No maximum, no rescaling: Cauchy and Schwarz bound every score.
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        at = base + cols[:, None] * dim + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        p = tl.where((cols < seq)[None, :], tl.exp(scores - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc += tl.dot(p, v, input_precision="ieee")
    if tl.sum((total > 0.0).to(tl.int32), axis=0) < BM:
        # The bound was too loose for a row: with the running maximum after all.
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        for start in range(0, seq, BN):
            cols = start + tl.arange(0, BN)
            at = base + cols[:, None] * dim + ds[None, :]
            mask = (cols < seq)[:, None] & (ds < dim)[None, :]
            k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
            v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
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
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    width = max(16, triton.next_power_of_2(dim))
    norm = torch.empty(batch * heads, dtype=torch.float32, device=q.device)
    key_norm[(batch * heads,)](k, norm, seq, dim, BN=32, BD=width)
    kernel[(batch * heads, triton.cdiv(seq, 16))](q, k, v, out, norm, seq, dim, dim**-0.5, BM=16, BN=32, BD=width)
    return out
